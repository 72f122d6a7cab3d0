"""The columns there is room for, their widths, and words on several lines."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.panels.services import COLUMNS
from tui.style.formats import GAP, TableColumn, fit, laid_out, wrapped

WIDTHS = st.lists(st.tuples(st.integers(1, 64), st.integers(0, 20)), min_size=1, max_size=12)
SERVICES = {"service": 9, "status": 10, "accuracy": 21, "spent": 19, "served": 6, "refused": 7, "markup": 7}
SERVICES |= {"sign": 1, "reward": 6, "policy": 13, "dataset": 9}


def total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


@given(sizes=WIDTHS, room=st.integers(1, 250), data=st.data())
def test_columns_fit_and_leave_in_the_written_order(
    sizes: list[tuple[int, int]], room: int, data: st.DataObject
) -> None:
    turns = data.draw(st.permutations(range(len(sizes))))  # 0 is the column that always stays
    columns = [TableColumn(str(i), "", leaves=turns[i], least=least) for i, (_, least) in enumerate(sizes)]
    wanted = {str(i): width for i, (width, _) in enumerate(sizes)}
    widths = laid_out(columns, wanted, room)
    assert total(widths) <= max(room, 1)
    assert all(1 <= width <= wanted[key] for key, width in widths.items())
    assert list(widths) == [column.key for column in columns if column.key in widths]
    gone = [column.leaves for column in columns if column.key not in widths]
    assert sorted(gone) == list(range(1, len(gone) + 1))
    if total(wanted) <= room:
        assert widths == wanted


@given(room=st.integers(40, 250))
def test_more_room_never_takes_a_column_away(room: int) -> None:
    assert set(laid_out(COLUMNS, SERVICES, room)) <= set(laid_out(COLUMNS, SERVICES, room + 1))


def test_services_lose_the_data_set_first_and_then_policy_and_reward() -> None:
    gone = {room: set(SERVICES) - set(laid_out(COLUMNS, SERVICES, room)) for room in (128, 125, 110, 97, 90)}
    assert gone == {
        128: set(),
        125: {"dataset"},
        110: {"dataset", "policy"},
        97: {"dataset", "policy", "reward"},
        90: {"dataset", "policy", "reward", "markup"},
    }


def test_a_long_name_is_cut_before_a_column_leaves() -> None:
    wanted = SERVICES | {"service": 64}
    assert laid_out(COLUMNS, wanted, 150)["service"] < 64
    assert set(laid_out(COLUMNS, wanted, 150)) == set(wanted)


@given(words=st.lists(st.text("abcdefghij", min_size=1, max_size=12), min_size=1), width=st.integers(1, 40))
def test_words_are_wrapped_without_a_loss_and_broken_only_if_longer_than_a_line(words: list[str], width: int) -> None:
    lines = list(wrapped(" ".join(words), width))
    assert all(0 < len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(words)
    if max(map(len, words)) <= width:
        assert " ".join(line.rstrip() for line in lines) == " ".join(words)


@given(words=st.text("ab 日本語", min_size=1), width=st.integers(-2, 12))
def test_wide_letters_take_two_cells_and_no_room_ends_too(words: str, width: int) -> None:
    assert cell_len(fit(words, width)) == max(0, width)
    lines = list(wrapped(words, width))
    assert all(cell_len(line) <= max(0, width) or len(line) == 1 for line in lines)
    assert "".join(lines).replace(" ", "") == words.replace(" ", "")


def test_a_text_in_no_room_is_nothing() -> None:
    assert [fit("digits", width) for width in (0, 1, 3, 6, 8)] == ["", "…", "di…", "digits", "digits  "]
