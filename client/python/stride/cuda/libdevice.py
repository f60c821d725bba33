"""CUDA's mathematical library, by the names that Numba's `cuda.libdevice` has: `libdevice.sinf(x)` in a kernel. Names
that end with `f` compute in float32."""

from stride.cuda._intrinsics import Intrinsic

_NAMES = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2
expm1 fabs fdim floor fma fmax fmin fmod hypot j0 j1 lgamma log log10 log1p log2 logb nearbyint nextafter normcdf
normcdfinv pow rcbrt remainder rhypot rint round rsqrt sin sinh sinpi sqrt tan tanh tgamma trunc y0 y1
""".split()
_FAST = ("cosf", "exp10f", "expf", "fdividef", "log10f", "log2f", "logf", "powf", "sinf", "tanf")


class LibdeviceFunction(Intrinsic):
    # One function; `target` is its name in CUDA C++.

    __doc__ = Intrinsic.__doc__  # a class without this has None

    def __init__(self, name: str, target: str, is_single: bool):
        super().__init__(f"libdevice.{name}")
        self.target, self.is_single = target, is_single


for _name in _NAMES:
    globals()[_name] = LibdeviceFunction(_name, _name, False)
    globals()[_name + "f"] = LibdeviceFunction(_name + "f", _name + "f", True)
for _name in _FAST:
    globals()["fast_" + _name] = LibdeviceFunction("fast_" + _name, "__" + _name, True)
__all__ = [*_NAMES, *(one + "f" for one in _NAMES), *("fast_" + one for one in _FAST)]
