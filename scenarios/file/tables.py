"""What the tables of the scenario file are made of: strict models, and values that TOML can hold."""

import datetime
import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from flmarket.core.names import LONGEST_NAME, NAME_PATTERN

LARGEST_SUM = 1_000_000_000  # of money; keeps a million rounds of micro-units well inside 64 bits


def six_decimals(amount: float) -> float:
    """Refuse money that cannot be counted in micro-units."""
    if round(amount, 6) != amount:
        raise PydanticCustomError("decimals", "has more than six decimals: {given}", {"given": repr(amount)})
    return amount


def plain(value: Any) -> Any:
    """Refuse what could not be written back to TOML and compared: dates, infinite numbers, endless integers."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case Mapping() as table:
                waiting.extend(table.values())
            case list() | tuple() as items:
                waiting.extend(items)
            case float() as number if not math.isfinite(number):
                raise PydanticCustomError("infinite", "must hold finite numbers only")
            case int() as number if not -(2**63) <= number < 2**63:
                raise PydanticCustomError("integer", "must hold integers of at most 64 bits")
            case datetime.date() | datetime.time():
                raise PydanticCustomError("date", "must not hold a date or a time of day")
    return value


Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
Plain = Annotated[Any, AfterValidator(plain)]


class Table(BaseModel):
    """A table of the scenario file: read-only, no unknown keys, no value taken for another type."""

    # Text is not a number and a boolean not an integer, but a list of TOML may become a tuple: see the fields.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
