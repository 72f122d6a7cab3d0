"""Notes before a batch: what a user should know before believing its results."""

from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.running.notes import notes

POOR = "small: no service can buy a client: none asks less than"
RISE = '\n[[interventions]]\nround = 3\nkey = "services.beta.budget"\nvalue = 1.0\n'


def about(text: str, *overrides: str) -> list[str]:
    return [note for note in notes([parse(text, overrides=overrides)], Shelf()) if note.startswith(POOR)]


def test_a_market_in_which_nobody_can_be_bought_is_noted(two_services: str) -> None:
    poor = ["services.*.budget=0.4", "clients.cost.per_emd=0"]  # 20 images cost 1.00
    assert about(two_services, *poor) == [f"{POOR} 1.00, and the largest budget is 0.4"]
    assert not about(two_services)
    assert not about(two_services, *poor, "services.beta.budget=1")
    assert not about(two_services + RISE, *poor)


def test_clients_that_bring_all_that_they_own_can_be_too_dear_for_everybody(one_service: str) -> None:
    text = one_service.replace("data_size = [20, 40]\nemd = [0.2, 1.0]\n", "")
    given = ["data.partition=iid", "clients.cost.per_emd=0"]
    [note] = about(text, *given)
    assert note.endswith("; clients.data_size lets them train on fewer of their images in a round")
    assert not about(text, *given, "clients.data_size=[20]")


def test_it_counts_what_clients_ask_not_what_the_work_costs_them(one_service: str) -> None:
    dear = ["services.alpha.budget=1", "clients.cost.per_emd=0", "clients.behaviour.kind=markup"]
    assert not about(one_service, *dear, "clients.behaviour.options.share=0")
    assert about(one_service, *dear, "clients.behaviour.options.share=0.5") == [
        f"{POOR} 1.50, and the largest budget is 1"
    ]
