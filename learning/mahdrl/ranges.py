"""What hyper-parameters may be: types that say it, for whoever reads options from a user (``scenarios.train``)."""

from typing import Annotated

from annotated_types import Ge, Gt, Le

Count = Annotated[int, Ge(1)]
Positive = Annotated[float, Gt(0.0)]
NotNegative = Annotated[float, Ge(0.0)]
Share = Annotated[float, Ge(0.0), Le(1.0)]
