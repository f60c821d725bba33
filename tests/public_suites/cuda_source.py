"""Cuts the device code out of a CUDA program: kernels and what they use, without the host's functions.

The parts of a source are its preprocessor lines and its declarations at namespace scope. Kernels are kept, and every
part that defines a name which a kept part uses; host functions are not."""

import os
import re

# Headers that a kernel may include wherever it is compiled; others are the host's.
_DEVICE_HEADERS = re.compile(
    r"cuda\.h|cuda_runtime(_api)?\.h|cuda_fp16\.h(pp)?|cuda_bf16\.h|cuda_fp8\.h|cuComplex\.h|cooperative_groups.*|"
    r"cub/.*|cuda/.*|curand.*|"
    r"mma\.h|math_constants\.h|device_launch_parameters\.h|vector_types\.h|thrust/.*|"
    r"stdint\.h|cstdint|cfloat|float\.h|climits|limits\.h|limits|type_traits|utility|algorithm|array|tuple|complex|"
    r"atomic|"
    r"c?assert(\.h)?|c?math(\.h)?|c?stdio(\.h)?|c?stddef(\.h)?|c?string\.h|cstring|functional|numeric|bit"
)
_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|[A-Za-z_]\w*|\s+|.', re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
_KEYWORDS = frozenset(
    """alignas auto bool char class const constexpr double else enum extern false float for if inline int long
    namespace new operator private protected public return short signed sizeof static struct switch template this
    true typedef typename union unsigned using void volatile while __device__ __global__ __host__ __shared__
    __constant__ __forceinline__ __restrict__ __launch_bounds__ __inline__ __noinline__ __align__ size_t int32_t
    uint32_t int64_t uint64_t std""".split()
)


def without_comments(text):
    text = text.replace("\r\n", "\n")
    return _TOKEN.sub(lambda m: " " if m[0].startswith(("//", "/*")) else m[0], text)


class Part:
    """A preprocessor line or a declaration, with the namespaces around it."""

    def __init__(self, text, spaces=()):
        self.text, self.spaces = text, spaces
        self.is_line = text.lstrip().startswith("#")
        # Before the body or the initializer.
        self.head = re.split(r"[{=;]" if "operator" not in text else r"[{;]", text, maxsplit=1)[0]
        self.is_kernel = not self.is_line and "__global__" in self.head
        self.is_template = re.match(r"\s*template\b", text) is not None
        plain = re.sub(r"template\s*<.*?>\s*(?=[A-Za-z_])", " ", self.head, count=1, flags=re.DOTALL)
        marks = r"__(?:align|launch_bounds|attribute|declspec)__\s*\((?:[^()]|\([^()]*\))*\)|alignas\s*\([^)]*\)"
        plain = re.sub(marks, " ", plain)
        self.is_type = re.match(r"\s*(?:typedef|using|struct|class|union|enum)\b", plain) is not None and not (
            re.match(r"\s*(?:struct|class|union|enum)\s+\w+\s*[*&]?\s*\w+\s*\(", plain)
        )
        self.is_function = not self.is_line and not self.is_type and "(" in plain
        self.is_device = any(one in self.head for one in ("__device__", "__global__", "__constant__", "constexpr"))
        match = re.search(r"(\w+)\s*(?:<[^()]*>)?\s*\(", plain) if self.is_function else None
        self.name = match[1] if match else ""

    def defines(self):
        if self.is_line:
            match = re.match(r"\s*#\s*define\s+(\w+)", self.text)
            return {match[1]} if match else set()
        if self.is_function:
            return {self.name} if self.name else set()
        text = self.text
        bare = re.sub(r"template\s*<.*?>\s*(?=[a-z])", "", text, count=1, flags=re.DOTALL)
        if self.is_type and not re.match(r"\s*(?:typedef|using)\b", bare):
            names = set(_WORD.findall(self.head))
            if re.search(r"\benum\b", self.head):
                names |= set(_WORD.findall(text))
            tail = text.rsplit("}", 1)[-1] if "}" in text else ""
            return (names | set(_WORD.findall(tail))) - _KEYWORDS
        if re.search(r"\btypedef\b", text) and "{" in text:
            return set(_WORD.findall(text.rsplit("}", 1)[-1])) | set(_WORD.findall(self.head)) - _KEYWORDS
        if re.search(r"\btypedef\b|\busing\b", self.head):
            return set(_WORD.findall(self.head)) - _KEYWORDS
        return set(_WORD.findall(re.sub(r"=[^,;]*", " ", text))) - _KEYWORDS

    def uses(self):
        return set(_WORD.findall(self.text))


def parts_of(text):
    """The parts of a text without comments, in order."""
    tokens = [one[0] for one in _TOKEN.finditer(text)]
    parts, spaces, now = [], [], []
    depth = parens = 0
    at = 0
    line_start = True
    while at < len(tokens):
        token = tokens[at]
        if token == "#" and line_start and depth == 0 and parens == 0 and not "".join(now).strip():
            line = []
            while at < len(tokens) and not ("\n" in tokens[at] and not (line and line[-1].endswith("\\"))):
                line.append(tokens[at])
                at += 1
            parts.append(Part("".join(line), tuple(spaces)))
            now, line_start = [], True
            continue
        if token.isspace():
            line_start = line_start and "\n" not in token or "\n" in token
            now.append(token)
            at += 1
            continue
        line_start = False
        now.append(token)
        at += 1
        if token == "(":
            parens += 1
        elif token == ")":
            parens = max(0, parens - 1)
        elif token == "{":
            so_far = "".join(now)
            space = re.fullmatch(r'\s*(?:inline\s+)?namespace\s*([\w:]*)\s*\{|\s*extern\s*("C")\s*\{', so_far)
            if depth == 0 and parens == 0 and space:
                spaces.append(so_far.strip())
                now = []
            else:
                depth += 1
        elif token == "}":
            if depth == 0:
                if spaces:
                    spaces.pop()
                now = []
                continue
            depth -= 1
            if depth == 0 and parens == 0:
                part = Part("".join(now), tuple(spaces))
                if part.is_function and "=" not in part.head:
                    parts.append(part)
                    now = []
        elif token == ";" and depth == 0 and parens == 0:
            parts.append(Part("".join(now), tuple(spaces)))
            now = []
    return parts


def flattened(path, roots, seen):
    """A source with its program's own headers in place of their includes."""
    real = os.path.realpath(path)
    if real in seen:
        return ""
    seen.add(real)
    with open(path, encoding="utf-8", errors="replace") as file:
        text = without_comments(file.read())
    made = []
    for line in text.split("\n"):
        match = _INCLUDE.match(line)
        places = [os.path.join(one, match[2]) for one in (os.path.dirname(path), *roots)] if match else []
        found = next((one for one in places if os.path.isfile(one)), None)
        made.append(flattened(found, roots, seen) if found else line)
    return "\n".join(made)


def _kept_line(part):
    match = _INCLUDE.match(part.text)
    if match:
        return _DEVICE_HEADERS.fullmatch(match[2]) is not None
    return re.match(r"\s*#\s*(?:pragma\s+once|error|warning)", part.text) is None


_KEPT_ANYWAY = re.compile(r"\s*(?:using\s+namespace\b|template\s*<.*?>\s*class\s+\w+\s*;)")
_TEMPLATE_HEAD = re.compile(r"\s*template\s*<(.*?)>\s*(?:static\s+|inline\s+|extern\s+)*(?:__\w+__|void|\()", re.DOTALL)
_CONCRETE = re.compile(r"\d+u?l*|float|double|int|unsigned(?: int)?|true|false|half|char|float[234]|bool")


def _is_concrete(field, whole):
    """Whether a template's argument is a number, a usual type or a macro of the program."""
    return _CONCRETE.fullmatch(field) or re.search(rf"#\s*define\s+{field}\b", whole)


def _guess(parameters):
    """Arguments for a template's parameters where no launch names them."""
    depth, fields, now = 0, [], ""
    for c in parameters:
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            fields.append(now)
            now = ""
        else:
            now += c
    fields.append(now)
    made = []
    for one in fields:
        one = one.strip()
        if "..." in one or not one:
            return None
        if "=" in one:
            break
        if re.match(r"(?:typename|class)\b", one):
            made.append("float")
        elif re.match(r"(?:const\s+)?bool\b", one):
            made.append("true")
        elif re.match(r"(?:const\s+)?(?:unsigned|int|u?int\d*_t|size_t|long|short|char|uint)\b", one):
            made.append("32")
        else:
            return None
    return ", ".join(made)


def _mark_by_macros(parts):
    """Functions marked as device functions or kernels by a macro of the program."""
    macros = {}
    for part in parts:
        match = part.is_line and re.match(r"\s*#\s*define\s+(\w+)\s+(.*__(?:device|global)__.*)", part.text, re.DOTALL)
        if match:
            macros[match[1]] = match[2]
    for part in parts:
        if part.is_function:
            for word in macros.keys() & set(_WORD.findall(part.head)):
                part.is_device = True
                part.is_kernel = part.is_kernel or "__global__" in macros[word]


def _definitions(folder):
    """The macros that a program's Makefile defines for all of its files."""
    path = os.path.join(folder, "Makefile")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        found = re.findall(r"(?<!\S)-D\s*(\w+(?:=[\w.+-]+)?)(?!\S)", file.read())
    return [f"-D{one}" for one in dict.fromkeys(found)]


class DeviceSource:
    """A program's device code: its text and the kernels to compile, with name expressions for templates."""

    def __init__(self, path, roots=()):
        parts = parts_of(flattened(path, roots, set()))
        _mark_by_macros(parts)
        self.kernels = [one for one in parts if one.is_kernel and one.text.rstrip().endswith("}")]
        if not self.kernels:
            self.text, self.entries, self.guessed, self.options = "", [], [], []
            return
        # Operators are used without their names.
        kept = {*self.kernels, *(one for one in parts if one.is_function and one.is_device and "operator" in one.head)}
        by_name = {}
        for part in parts:
            if part.is_function and not part.is_device:
                continue
            for name in part.defines():
                by_name.setdefault(name, []).append(part)
        waiting = list(kept)
        while waiting:
            for name in waiting.pop().uses():
                for part in by_name.get(name, ()):
                    if part not in kept:
                        kept.add(part)
                        waiting.append(part)
        out, spaces = [], ()
        for part in parts:
            if part.is_line:
                if not _kept_line(part):
                    continue
            elif part not in kept and not _KEPT_ANYWAY.match(part.text):
                continue
            if re.match(r"\s*using\s+namespace\s+std\b", part.text):
                continue
            while spaces and spaces != part.spaces[: len(spaces)]:
                out.append("}")
                spaces = spaces[:-1]
            for one in part.spaces[len(spaces) :]:
                out.append(one)
            spaces = part.spaces
            out.append(part.text.strip("\n") if part.is_line else part.text)
        out += ["}"] * len(spaces)
        # The host's headers include these.
        brought = ["#include <type_traits>", "#include <limits>", "#include <utility>"]
        hosts = [one for one in parts if one.is_line and _INCLUDE.match(one.text) and not _kept_line(one)]
        self.text = "\n".join((brought if hosts else []) + out) + "\n"
        self.entries = self._entries("\n".join(one.text for one in parts))
        self.options = _definitions(os.path.dirname(path))

    def _entries(self, whole):
        """The names, and sets those of them whose template arguments are guessed."""
        made, self.guessed = [], []
        for kernel in self.kernels:
            spaces = [re.match(r"(?:inline\s+)?namespace\s*([\w:]+)", one) for one in kernel.spaces]
            space = "".join(one[1] + "::" for one in spaces if one)
            if not kernel.is_template:
                made.append(space + kernel.name)
                continue
            named = re.findall(rf"\b{kernel.name}\s*<((?:[^<>;()]|\([^()]*\)|<[^<>]*>)+)>\s*(?:<<<|\))", whole)
            simple = [one.strip() for one in named if re.fullmatch(r"[\w\s,:]+", one)]
            concrete = [one for one in simple if all(_is_concrete(field.strip(), whole) for field in one.split(","))]
            match = _TEMPLATE_HEAD.match(kernel.text)
            arguments = concrete[0] if concrete else _guess(match[1]) if match else None
            if arguments is not None:
                made.append(f"{space}{kernel.name}<{arguments}>")
                if not concrete:
                    self.guessed.append(made[-1])
        return list(dict.fromkeys(made))
