// The C math functions that generated code calls by name. NVRTC has them built in; on the CPU the
// compiler's prelude declares them before this text:
//   float f(float), named with a trailing f, and double f(double), for f of
//     sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10
//     log1p cbrt
//   float f(float, float) and double f(double, double), for f of
//     pow atan2 hypot fmod
//   float ldexpf(float, int), double ldexp(double, int)
// sqrt, floor, ceil, trunc, rint, fabs and copysign are compiler builtins there.
