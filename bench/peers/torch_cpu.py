"""Makes the PyPI build of torch importable where there is no CUDA: ``torch_without_cuda(SITE_PACKAGES)``.

Two peers import torch and never compute with it. Its Linux wheel is linked against CUDA's libraries, gigabytes that
nobody needs for that. Their place is taken by stand-ins that define just the symbols that torch's own libraries ask
for: CUDA then has no devices, and whatever else is called ends the program.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

TOOLS = ("gcc", "nm")
_KEPT = ("libtorch_python.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch.so", "libc10.so", "libshm.so")
_CUDA = "libtorch_cuda.so"
_REMOVED = (_CUDA, "libtorch_cuda_linalg.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so")
_ALWAYS = (_CUDA, "libcufile.so.0", "libnccl.so.2", "libcudart.so.13", "libcudnn.so.9", "libcupti.so.13")
_SYSTEM = ("GLIBC", "GCC_", "CXXABI", "GOMP_", "OMP_")  # versions of symbols that are there anyway
_HEAD = """
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#define F __attribute__((visibility("default")))
extern char _ZTVN10__cxxabiv117__class_type_infoE[], _ZTVN4c10d7Backend7OptionsE[];
"""

# What stands in for a symbol ($): by its name, else by a part of it, in this order. 100 is cudaErrorNoDevice.
_ERROR = "int $(void) { return 100; }"
_OBJECT = "void *$[512];"
_NOTHING = "void $(void) { abort(); }"
_BY_NAME = {
    "cudaGetDeviceCount": "int $(int *n) { *n = 0; return 100; }",
    "cudaGetLastError": "int $(void) { return 0; }",
    "cudaPeekAtLastError": "int $(void) { return 0; }",
    "cudaDriverGetVersion": "int $(int *v) { *v = 0; return 0; }",
    "cudaRuntimeGetVersion": "int $(int *v) { *v = 0; return 0; }",
    "cudaGetErrorString": 'const char *$(int e) { return "no CUDA"; }',
    "cudaGetErrorName": 'const char *$(int e) { return "no CUDA"; }',
}
_BY_PART = (
    # Called while torch is loaded: a reference that is written to, and a default argument.
    ("get_gil_checker", "void **$(void) { static void *slot; return &slot; }"),
    (
        "16ProcessGroupNCCL7OptionsC",
        "void $(void **p) { memset(p, 0, malloc_usable_size(p)); *p = _ZTVN4c10d7Backend7OptionsE + 16; }",
    ),
    ("_ZTI", 'void *$[4] = { _ZTVN10__cxxabiv117__class_type_infoE + 16, (void *)"$", 0, 0 };'),
    ("_ZTV", _OBJECT),
    ("_Z", _NOTHING),
    *((part, _ERROR) for part in ("cuda", "cupti", "cudnn", "cuFile", "nccl")),
)


def torch_without_cuda(site_packages: Path) -> None:
    """Replace the CUDA libraries of a freshly installed torch. Raises `subprocess.CalledProcessError`."""
    folder = site_packages / "torch" / "lib"
    needed = _needed(folder)
    data = {name for library in _REMOVED for name, kind in _defined(folder / library) if kind in "DBRV"}
    given = {name for library in _REMOVED for name, _ in _defined(folder / library)}
    libraries: defaultdict[str, list[str]] = defaultdict(list, {name: [] for name in _ALWAYS})
    for symbol, version in sorted(needed.items()):
        if version.startswith("lib"):
            libraries[version].append(symbol)
        elif symbol in given or symbol.startswith(("cuFile", "nccl")):
            libraries[_CUDA].append(symbol)
    for library in _REMOVED:
        (folder / library).unlink(missing_ok=True)
    for library, symbols in libraries.items():
        source = _HEAD + "\n".join(_stand_in(symbol, data=symbol in data) for symbol in symbols)
        _compile(folder, library, source, versioned=library in needed.values())


def _stand_in(symbol: str, *, data: bool) -> str:
    if symbol in _BY_NAME:
        text = _BY_NAME[symbol]
    elif data and not symbol.startswith("_ZT"):
        text = _OBJECT
    else:
        text = next((text for part, text in _BY_PART if part in symbol), _NOTHING)
    return "F " + text.replace('"$"', f'"{symbol[4:]}"').replace("$", symbol)


def _compile(folder: Path, library: str, source: str, *, versioned: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        code, versions = Path(name) / "stand_in.c", Path(name) / "versions"
        code.write_text(source)
        command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", "-o", str(folder / library), str(code)]
        command += [f"-Wl,-soname,{library}", "-Wl,--allow-shlib-undefined"]
        if versioned:
            versions.write_text(f"{library} {{ global: *; }};\n")
            command.append(f"-Wl,--version-script,{versions}")
        if "_ZTV" in source.removeprefix(_HEAD):
            command += ["-lstdc++", f"-L{folder}", "-l:libtorch_cpu.so", "-Wl,-rpath,$ORIGIN"]
        subprocess.run(command, check=True, capture_output=True)


def _needed(folder: Path) -> dict[str, str]:
    """Symbols that torch's own libraries ask others for, with the version they ask for ('' where none)."""
    found: dict[str, str] = {}
    for library in _KEPT:
        for name, kind in _symbols(folder / library, "--undefined-only"):
            symbol, _, version = name.replace("@@", "@").partition("@")
            if kind == "U" and not version.startswith(_SYSTEM):
                found[symbol] = version
    return found


def _defined(path: Path) -> list[tuple[str, str]]:
    return [(name.partition("@")[0], kind) for name, kind in _symbols(path, "--defined-only")] if path.exists() else []


def _symbols(path: Path, which: str) -> list[tuple[str, str]]:
    """Name and kind of a library's dynamic symbols."""
    command = ["nm", "-D", "--with-symbol-versions", which, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [(fields[-1], fields[-2]) for line in output.splitlines() if len(fields := line.split()) > 1]


def missing_tool() -> str | None:
    """The first program that this needs and that is not there."""
    return next((tool for tool in TOOLS if shutil.which(tool) is None), None)
