from stride.jax._config import config, enable_x64
from stride.jax._gradients import *
from stride.jax._gradients import stop_gradient
