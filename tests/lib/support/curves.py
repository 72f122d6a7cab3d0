"""A learning curve for tests: of no data set in particular."""

from fl.surrogate.learning_curves import Curve

CURVE = Curve(
    start=0.9,
    floor=0.01,
    step_0=1.0,
    step_size=0.8,
    step_clients=-0.3,
    step_emd=-0.5,
    first_size=0.5,
    first_clients=-0.2,
    first_emd=-0.3,
    decay=0.8,
    shape=2.0,
    drift_emd=0.2,
    drift_left=0.8,
    spread_0=-2.0,
    spread_progress=-0.1,
    spread_left=0.8,
    skew=0.15,
    luck=0.3,
    loss_0=1.0,
    loss_error=0.9,
    loss_emd=-0.5,
)
