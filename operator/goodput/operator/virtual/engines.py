"""Starts simulated servers in this process. The only module of this part that knows the engines (import layers)."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from goodput.analysis.schema.planned import Config
from goodput.engines.errors import KvCacheTooSmallError, ProfileError
from goodput.engines.simulated import arguments
from goodput.engines.simulated.profile import Profile, is_path, load_profile
from goodput.engines.simulated.virtual import VirtualEngine
from goodput.operator.observed import Failure
from goodput.operator.spec import configproblem
from goodput.operator.spec.compilekey import compile_key
from goodput.operator.spec.errors import MISSING, Problem, SpecError
from goodput.operator.spec.estimate import START_SECONDS
from goodput.operator.spec.flagtable import table
from goodput.operator.spec.serverrules import too_long
from goodput.operator.sweep import Sweep

COMPILE_SHARE = 27.2 / 50.9
"""Of a cold start's time that a warm one saves: vLLM's own example, Qwen3-8B (vllm-project/vllm#32337)."""

_NAME_ONE = "name a profile that comes along, or a YAML file"
_TEACHING = "teaching"
_PRODUCT = "nvidia.com/gpu.product"
"""Label of a node with the name of its GPUs."""
_ONE_DEVICE = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


class StartRefusedError(Exception):
    """The server would not start; ``failure`` is what a real one's log would be classified as."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass
class Simulator:
    """Simulated servers for the configs of one sweep.

    Attributes:
        profiles: step times by engine name.
        names: of the profiles as they were asked for, by engine name.
        unmodelled: flags of the sweep that the simulator has no model for, by engine name.
    """

    sweep: Sweep
    profiles: Mapping[str, Profile]
    names: Mapping[str, str]
    unmodelled: Mapping[str, tuple[str, ...]]
    _compiled: set[tuple[str, ...]] = field(default_factory=set)

    def flags(self, config: Config) -> dict[str, str]:
        """Those of a config that are modelled."""
        return {flag: value for flag, value in config.flags.items() if flag not in self.unmodelled[config.engine]}

    def describe(self, config: Config) -> str:
        """What a config's numbers rest on, for its records."""
        profile, ignored = self.profiles[config.engine], self.unmodelled[config.engine]
        without = f"; flags without a model: {', '.join(ignored)}" if ignored else ""
        other = "".join(f"; {text}" for text in self.unlike(config.engine))
        return f"nothing was run; step times of profile {profile.name} ({profile.source}){without}{other}"

    def unlike(self, engine: str) -> Iterator[str]:
        """How the profile is of something else than the sweep asks for, which changes no step time."""
        profile, model, asked = self.profiles[engine], self.sweep.spec.model.name, self.sweep.engines[engine]
        if profile.model is None and asked.kind == "vllm":
            yield f"profile {profile.name} is of no model, so not of {model} either"
        elif profile.model is not None and _letters(profile.model) not in _letters(model):
            yield f"profile {profile.name} is of {profile.model} on {profile.device}, not of {model}"
        product = asked.node_selector.get(_PRODUCT)
        if product is not None and _letters(product) != _letters(profile.device):
            yield f"profile {profile.name} is of device {profile.device}, and nodeSelector asks for {product}"

    def start(self, config: Config, now_seconds: float) -> VirtualEngine:
        """A server that is ready at that time.

        Raises:
            StartRefusedError: vLLM would refuse the flags, or lack memory.
        """
        profile, model = self.profiles[config.engine], self.sweep.spec.model
        words = [model.name, "--served-model-name", model.served, *table("simulated").arguments(self.flags(config))]
        told = io.StringIO()
        try:
            with contextlib.redirect_stderr(told):
                resolved = arguments.resolve(arguments.parse(words), profile)
        except KvCacheTooSmallError as error:
            raise StartRefusedError(Failure("KvCacheTooSmall", str(error))) from error
        except ValidationError as error:
            message = "; ".join(str(fault["msg"]) for fault in error.errors())
            raise StartRefusedError(Failure("InvalidServerArgs", message)) from error
        except SystemExit as error:
            last = told.getvalue().strip().splitlines()[-1:]
            raise StartRefusedError(Failure("InvalidServerArgs", " ".join(last))) from error
        return VirtualEngine(resolved, profile, round(now_seconds * 1e9))

    def compiles(self, config: Config) -> bool | None:
        """Whether this start compiles anew, as far as the plan tells; None where nothing compiles.

        A cache that is kept has what an earlier start with the same compile key left.
        """
        engine = self.sweep.engines[config.engine]
        if engine.kind != "vllm":
            return None
        if engine.compile_cache.mode == "none":
            return True
        key = compile_key(config)
        new = key not in self._compiled
        self._compiled.add(key)
        return new

    def start_seconds(self, config: Config, *, compiles: bool | None) -> float:
        """Start until Ready: as the flag says, else what a start of vLLM usually takes."""
        kind = self.sweep.engines[config.engine].kind
        if kind == "simulated":
            return float(config.flags.get("start_seconds", 0.0))
        return START_SECONDS[kind] * (1.0 if compiles else 1.0 - COMPILE_SHARE)


def simulator(sweep: Sweep, profile: str | None) -> Simulator:
    """What simulates a sweep.

    Args:
        sweep: resolved.
        profile: step times of all engines, in place of those that the spec names.

    Raises:
        SpecError: with all that cannot be simulated.
    """
    names = {engine.name: profile or engine.profile or _TEACHING for engine in sweep.spec.engines}
    everywhere, here = ((), ()) if profile else profile_problems(sweep)
    if problems := (*_kinds(sweep, profile), *_flags(sweep), *everywhere, *here):
        raise SpecError(problems)
    try:
        profiles = {name: load_profile(asked) for name, asked in names.items()}
    except ProfileError as error:
        raise SpecError((Problem("--profile", MISSING, str(error), _NAME_ONE),)) from error
    if problems := tuple(_lengths(sweep, profiles)):
        raise SpecError(problems[:1])
    return Simulator(
        sweep, profiles, names, {engine.name: _unmodelled(sweep, engine.name) for engine in sweep.spec.engines}
    )


def _letters(name: str) -> str:
    """A model's name without what is spelled in several ways: ``meta-llama/Meta-Llama-3-8B`` has ``llama38b``."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def profile_problems(sweep: Sweep) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """What is wrong with the profiles of simulated engines: everywhere, and on this machine alone.

    A profile's file may be there in the image of the server. Names and model lengths are the same everywhere.
    """
    profiles: dict[str, Profile] = {}
    unknown: list[Problem] = []
    unread: list[Problem] = []
    for number, engine in enumerate(sweep.spec.engines):
        if engine.kind == "simulated":
            try:
                profiles[engine.name] = load_profile(engine.profile or _TEACHING)
            except ProfileError as error:
                found = unread if is_path(engine.profile or "") else unknown
                found.append(Problem(f"spec.engines[{number}].profile", engine.profile, str(error), _NAME_ONE))
    return (*unknown, *tuple(_lengths(sweep, profiles))[:1]), tuple(unread)


def _lengths(sweep: Sweep, profiles: Mapping[str, Profile]) -> Iterator[Problem]:
    """Requests that do not fit the profile's model length, which holds unless a flag sets one (auto, -1: none)."""
    loads = [step.load for step in sweep.loads]
    for config in sweep.configs:
        profile, asked = profiles.get(config.engine), configproblem.number(config, "max_model_len")
        if profile is not None and (asked is None or asked < 0):
            length = profile.max_model_len
            yield from too_long(config, loads, length, f"max_model_len ({length}, of profile {profile.name})")


def _kinds(sweep: Sweep, profile: str | None) -> Iterator[Problem]:
    for number, engine in enumerate(sweep.spec.engines):
        place = f"spec.engines[{number}].kind"
        if engine.kind not in ("simulated", "vllm"):
            yield Problem(place, engine.kind, "cannot be simulated", "only simulated and vllm engines can")
        elif engine.kind == "vllm" and profile is None:
            fix = "say on which hardware it is to be predicted: --profile NAME (h100-llama-3-8b, say)"
            yield Problem(place, engine.kind, "is a real server, of which the simulator knows nothing", fix)


def _unmodelled(sweep: Sweep, engine: str) -> tuple[str, ...]:
    """Flags that the simulator does not have: it predicts as if they changed nothing."""
    known = table("simulated").kinds.keys() | set(_ONE_DEVICE)
    flags = {flag for config in sweep.configs if config.engine == engine for flag in config.flags}
    return tuple(sorted((flags - known) | (flags & set(_ONE_DEVICE))))


def _flags(sweep: Sweep) -> Iterator[Problem]:
    """A flag without a model may be set, but not swept: its configs would be made equal."""
    for engine in sweep.spec.engines:
        configs = [config for config in sweep.configs if config.engine == engine.name]
        ignored = set(_unmodelled(sweep, engine.name))
        for flag in sorted(ignored & {flag for config in configs for flag in config.swept}):
            yield Problem(
                f"spec.configs: {flag}", MISSING, "has no model: all its values would look the same", "leave it out"
            )
        for flag in _ONE_DEVICE:
            other = next((value for config in configs if (value := config.flags.get(flag, "1")) != "1"), None)
            if other is not None:
                yield Problem(flag, other, "is not modelled: a profile describes one device", "predict one device")
