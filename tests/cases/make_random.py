"""Writes tests/conformance/device/random_answers.h: random numbers as the contract defines them, step by step
in Python.

The generators are checked against their authors' known answers, and the normal quantiles against the standard
library's. Run by hand: python3 tests/cases/make_random.py
"""

import math
import pathlib
import statistics
import struct

import numpy as np

MASK = 0xFFFFFFFF
ROOT = pathlib.Path(__file__).resolve().parents[2]


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def threefry(counter, key):
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    keys = [key[0], key[1], 0x1BD11BDA ^ key[0] ^ key[1]]
    x = [(counter[0] + keys[0]) & MASK, (counter[1] + keys[1]) & MASK]
    for round in range(20):
        x[0] = (x[0] + x[1]) & MASK
        r = rotations[round % 8]
        x[1] = ((x[1] << r) | (x[1] >> (32 - r))) & MASK
        x[1] ^= x[0]
        if round % 4 == 3:
            step = round // 4 + 1
            x[0] = (x[0] + keys[step % 3]) & MASK
            x[1] = (x[1] + keys[(step + 1) % 3] + step) & MASK
    return x


def words(number, count):
    return [(number >> (32 * i)) & MASK for i in range(count)]


# The known answers that the generators' authors publish with Random123.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
assert threefry([0] * 2, [0] * 2) == [0x6B200159, 0x99BA4EFE]
assert threefry([MASK] * 2, [MASK] * 2) == [0x1CB996FC, 0xBB002BE7]
assert threefry([0x243F6A88, 0x85A308D3], [0x13198A2E, 0x03707344]) == [0xC4923A9C, 0x483DF7A0]


def stream(generator, key, counter, high):
    """The words one after another."""
    block = 0
    while True:
        if generator == "PHILOX_4X32":
            yield from philox(words((counter + (high << 64) + block) % (1 << 128), 4), words(key, 2))
        else:
            yield from threefry(words((counter + block) % (1 << 64), 2), words(key, 2))
        block += 1


def log(x):
    m, exponent = math.frexp(x)
    if m < 0.70710678118654752440:
        m, exponent = m * 2, exponent - 1
    f = (m - 1) / (m + 1)
    s = f * f
    total = 1.0 / 23
    for k in range(21, 0, -2):
        total = total * s + 1.0 / k
    return exponent * 0.69314718055994530942 + 2 * f * total


A = [3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3]
B = [1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3]
C = [1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4]
D = [1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9]
E = [6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7]
F = [1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15]


def polynomial(coefficients, r):
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * r + c
    return total


def quantile(u):
    q = u - 0.5
    if -0.425 <= q <= 0.425:
        r = 0.180625 - q * q
        return q * polynomial(A, r) / polynomial(B, r)
    r = math.sqrt(-log(u if q < 0 else 1 - u))
    z = polynomial(C, r - 1.6) / polynomial(D, r - 1.6) if r <= 5 else polynomial(E, r - 5) / polynomial(F, r - 5)
    return -z if q < 0 else z


for u in [0.5, 0.3, 0.9, 0.01, 0.999, 1e-5, 1e-12, 1e-16, 1 - 2**-50]:
    true = statistics.NormalDist().inv_cdf(u)
    assert abs(quantile(u) - true) <= 4e-15 * max(1, abs(true)), u
assert all(abs(log(x) - math.log(x)) <= 2 * math.ulp(math.log(x)) for x in [0.07, 0.01, 1e-3, 1e-9, 2.0**-53, 0.05])


def pairs(source):
    while True:
        low = next(source)
        yield low | next(source) << 32


def bits_of(value, dtype):
    return int(np.array(value, dtype).view(f"u{np.dtype(dtype).itemsize}"))


def numbers(distribution, dtype, source):
    """Each element's bits."""
    if distribution == "bits":
        yield from source if dtype == "uint32" else pairs(source)
    elif distribution == "integers":  # in [-5, 1000)
        for x in pairs(source):
            yield bits_of(-5 + (x * 1005 >> 64), dtype)
    elif distribution == "uniform":
        for x in source if dtype != "float64" else pairs(source):
            b, width = {"float64": (53, 64), "float32": (24, 32), "float16": (11, 32)}[dtype]
            yield bits_of((x >> (width - b)) / 2.0**b, dtype)
    elif distribution == "scaled":  # uniform in [-3, 7.5)
        for x in source if dtype != "float64" else pairs(source):
            b, width = {"float64": (53, 64), "float32": (24, 32)}[dtype]
            real = np.dtype(dtype).type
            yield bits_of(real(-3) + real(10.5) * real((x >> (width - b)) / 2.0**b), dtype)
    elif dtype == "float64":  # normal, mean 2.5, deviation 3
        for x in pairs(source):
            yield bits_of(2.5 + 3.0 * quantile(((x >> 12) + 0.5) * 2.0**-52), dtype)
    else:
        for x in source:
            yield bits_of(np.float32(2.5) + np.float32(3) * quantile_of_word(x), dtype)


def quantile_of_word(word):
    """PPND7 of the middle of one of 2^32 parts of (0, 1), each step rounded to float32."""
    f = np.float32

    def polynomial(coefficients, x):
        total = f(coefficients[-1])
        for one in reversed(coefficients[:-1]):
            total = f(f(total * x) + f(one))
        return total

    signed = word - (1 << 31)
    q = f(f(f(signed) + f(0.5)) * f(2.0**-32))
    if abs(q) <= f(0.425):
        r = f(f(0.180625) - f(q * q))
        above = polynomial([3.3871327179e0, 5.0434271938e1, 1.5929113202e2, 5.9109374720e1], r)
        z = f(f(q * above) / polynomial([1.0, 1.7895169469e1, 7.8757757664e1, 6.7187563600e1], r))
    else:
        p = f(f(f(word if signed < 0 else MASK - word) + f(0.5)) * f(2.0**-32))
        mantissa, exponent = math.frexp(float(p))
        m = f(mantissa)
        if m < f(0.70710678):
            m, exponent = f(m * f(2)), exponent - 1
        g = f(f(m - f(1)) / f(m + f(1)))
        square = f(g * g)
        rest = f(polynomial([1 / f(3), 1 / f(5), 1 / f(7), 1 / f(9)], square) * square)
        twice = f(f(2) * g)
        log = f(f(f(exponent) * f(0.69314718)) + f(twice + f(twice * rest)))
        r = f(np.sqrt(-log) - f(1.6))
        above = polynomial([1.4234372777e0, 2.7568153900e0, 1.3067284816e0, 1.7023821103e-1], r)
        z = f(above / polynomial([1.0, 7.3700164250e-1, 1.2021132975e-1], r))
        z = -z if signed < 0 else z
    exact = statistics.NormalDist().inv_cdf((word + 0.5) * 2.0**-32)
    assert abs(float(z) - exact) <= 1e-6 * abs(exact) + 1e-9, (word, z, exact)
    return z


def lines_of(answers):
    """Numbers as the elements of an initializer, four in a line."""
    texts = [f"{answer:#x}u" for answer in answers]
    return ",\n      ".join(", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4))


def main():
    cases = []
    keys = [
        (0, 0, 0),
        ((1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1),
        (0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E),
    ]
    for generator in ["PHILOX_4X32", "THREEFRY_2X32"]:
        for key, counter, high in keys:
            if generator == "THREEFRY_2X32":
                high = 0
                if key == 0x299F31D0A4093822:
                    key = 0x0370734413198A2E
            for distribution, dtype in [
                ("bits", "uint32"), ("bits", "uint64"), ("integers", "int32"), ("integers", "int64"),
                ("uniform", "float16"), ("uniform", "float32"), ("uniform", "float64"), ("scaled", "float32"),
                ("scaled", "float64"), ("normal", "float32"), ("normal", "float64"),
            ]:
                made = numbers(distribution, dtype, stream(generator, key, counter, high))
                answers = [next(made) for _ in range(12)]
                name = dtype.replace("uint", "UInt") if dtype.startswith("uint") else dtype.capitalize()
                cases.append(
                    f'    {{"{generator}", "{distribution}", DType::k{name},'
                    f" {key:#x}u, {counter:#x}u, {high:#x}u,\n     {{" + lines_of(answers) + "}},"
                )
    text = (
        "#pragma once\n\n#include <cstdint>\n#include <vector>\n\n#include \"server/store/dtype.h\"\n\n// Generated "
        "by tests/cases/make_random.py.\n"
        "namespace stride::conformance "
        "{\n\nstruct RandomAnswer {\n  const char* generator;\n  const char* distribution;\n  DType dtype;\n"
        "  uint64_t key, counter, counter_high;\n  std::vector<uint64_t> bits;  // the first elements\n};\n\n"
        "// clang-format off\ninline const std::vector<RandomAnswer>& RandomAnswers() "
        "{\n  static const auto& answers = *new std::vector<RandomAnswer>{\n"
        + "\n".join(cases)
        + "\n  };\n  return answers;\n}\n// clang-format on\n\n}  // namespace stride::conformance\n"
    )
    (ROOT / "tests/conformance/device/random_answers.h").write_text(text)


main()
