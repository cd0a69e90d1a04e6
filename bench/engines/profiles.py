"""Makes the shipped hardware profiles again from published tables.

    python -m bench.engines.profiles FOLDER [--write]

FOLDER holds `llmservingsim_profiles` and `llmservingsim_vllm_runs` (casys-kaist/LLMServingSim@5daddb2) and
`vidur_profiles` (microsoft/vidur@7d47513). Prints the coefficients and how well they give the tables back;
with --write the files of the package are replaced.

The host's overhead is in no kernel table. RTX: from the run of the *other* device (its mean TPOT), so that no
profile is fitted to the run that it is tested on. A100: the mean of those two. H100: so that a lone decode
takes what one published measurement says. What Vidur's tables lack (attention, output layer) is the data
sheet's number times the efficiency that the two RTX devices reach in their tables (mean of both).
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from bench.engines.devices import A100, H100, LLAMA_2_7B, LLAMA_3_8B, RTX_4090, RTX_PRO_6000, Device
from bench.engines.runs import Run, read_run, replay
from scipy.optimize import brentq

from goodput.engines.calibration.fit import DenseFit, Fit, fit_dense, fit_tables, scaled, with_host_overhead
from goodput.engines.calibration.tables import read_llmservingsim, read_vidur_dense
from goodput.engines.simulated.profile import RooflineProfile, StepCosts

PROFILES = Path(__file__).parents[2] / "engines/goodput/engines/profiles"
GRAPHS = 512
LLMSERVINGSIM = "casys-kaist/LLMServingSim@5daddb2"
VIDUR = "microsoft/vidur@7d47513"
#: kubernetes-sigs/inference-perf@7de5ef2 demos/kubecon-na-2025: 1 request/s, 204 and 64 tokens, vLLM 0.11.
LONE_DECODE_SECONDS = 7.23e-3
LONE_CONTEXT = 204 + 32
MODEL = LLAMA_3_8B
LLAMA_3, LLAMA_3_1 = "Llama-3-8B", "Llama-3.1-8B"


@dataclass(frozen=True)
class Efficiency:
    """Share of the data sheet's number that a table reaches: bytes of KV and head, operations of attention."""

    kv: float
    head: float
    attention: float
    mixed: float


def efficiency(device: Device, costs: StepCosts, head_seconds: float) -> Efficiency:
    """What `costs`, fitted to the device's table, say."""
    kv_seconds = costs.per_decode_kv_token_seconds
    mixed = costs.per_mixed_decode_kv_token_seconds
    if mixed is None:
        raise ValueError("the costs have no mixed steps")
    return Efficiency(
        kv=MODEL.kv_bytes_per_token / device.bandwidth / kv_seconds,
        head=MODEL.head_bytes / device.bandwidth / head_seconds,
        attention=MODEL.attention_flop_per_pair / device.peak / costs.per_prefill_attention_seconds,
        mixed=kv_seconds / mixed,
    )


def roofline_costs(device: Device, dense: DenseFit, share: Efficiency, like: StepCosts) -> StepCosts:
    """Costs from matrix products that were measured and data-sheet numbers for the rest; `like` for launches."""
    kv = MODEL.kv_bytes_per_token / device.bandwidth / share.kv
    return like.model_copy(
        update={
            "overhead_seconds": MODEL.head_bytes / device.bandwidth / share.head,
            "weights_seconds": dense.weights_seconds,
            "per_token_seconds": dense.per_token_seconds,
            "blend_exponent": dense.blend_exponent,
            "per_decode_kv_token_seconds": kv,
            "per_mixed_decode_kv_token_seconds": kv / share.mixed,
            "per_prefill_attention_seconds": MODEL.attention_flop_per_pair / device.peak / share.attention,
        }
    )


def profile(name: str, device: Device, costs: StepCosts, max_model_len: int, source: str) -> RooflineProfile:
    """A shipped profile of the one shape that all tables have in common."""
    return RooflineProfile(
        kind="roofline",
        name=name,
        synthetic=True,
        source=source,
        device=device.name,
        model=LLAMA_3,
        max_model_len=max_model_len,
        memory=device.memory(MODEL),
        step=costs.model_copy(
            update={
                key: float(f"{value:.4g}")
                for key, value in costs.model_dump(exclude={"cuda_graph_max_tokens"}).items()
                if value is not None
            }
        ),
    )


def host_overhead(run: Run, kernels: RooflineProfile) -> float:
    """Seconds per step, at least 0, with which the replay has the run's mean TPOT."""

    def excess(seconds: float) -> float:
        step = with_host_overhead(kernels.step, seconds)
        return replay(run, kernels.model_copy(update={"step": step})).tpot / run.measured.tpot - 1

    return 0.0 if excess(0.0) >= 0 else float(brentq(excess, 0.0, 0.02, xtol=1e-5))


def rtx(folder: Path, tables: str, device: Device) -> tuple[Fit, Efficiency, RooflineProfile, Run]:
    """Fit, efficiency, a profile without host, and the run of one RTX device."""
    read = read_llmservingsim(folder / f"llmservingsim_profiles/{tables}/Llama-3.1-8B/tp1", MODEL.layers)
    fit = fit_tables(read, cuda_graph_max_tokens=GRAPHS)
    share = efficiency(device, fit.costs, float(read.head.seconds[0]))
    run = read_run(folder / f"llmservingsim_vllm_runs/{tables}/Llama-3.1-8B/vllm")
    return fit, share, profile(tables, device, fit.costs, 131072, "kernels"), run


def build(folder: Path) -> list[RooflineProfile]:
    """All profiles that tables make, and what was fitted on what, printed."""
    tables = ("RTX4090", "RTXPRO6000")
    devices = (RTX_4090, RTX_PRO_6000)
    found = [rtx(folder, name, device) for name, device in zip(tables, devices, strict=True)]
    overheads = [host_overhead(run, kernels) for _, _, kernels, run in found]
    for name, (fit, share, _, _), own in zip(tables, found, overheads, strict=True):
        print(f"{name}: mean error dense {fit.dense_error:.1%}, attention {fit.attention_error:.1%}, ", end="")
        print(f"head {fit.head_error:.1%}; {share}; host overhead of its run {own * 1e3:.2f} ms")
    made = [
        profile(
            name,
            device,
            with_host_overhead(fit.costs, other),
            32768,
            f"{LLMSERVINGSIM} profiler/perf/{table}/meta-llama/Llama-3.1-8B/bf16 (kernels, vLLM 0.19); host overhead "
            f"{other * 1e3:.2f} ms per step, so that the run of {elsewhere} in bench/examples has its mean TPOT",
        ).model_copy(update={"model": LLAMA_3_1})
        for name, device, table, elsewhere, (fit, _, _, _), other in zip(
            ("rtx-4090-llama-3.1-8b", "rtx-pro-6000-llama-3.1-8b"),
            devices,
            tables,
            reversed(tables),
            found,
            reversed(overheads),
            strict=True,
        )
    ]
    share = Efficiency(
        *(float(np.mean(pair)) for pair in zip(*(vars(one).values() for _, one, _, _ in found), strict=True))
    )
    like = found[1][0].costs
    return [*made, a100(folder, share, like, float(np.mean(overheads))), h100(folder, share, like)]


def a100(folder: Path, share: Efficiency, like: StepCosts, host: float) -> RooflineProfile:
    """Llama-3-8B's own table."""
    dense = fit_dense(read_vidur_dense(folder / "vidur_profiles/a100/Meta-Llama-3-8B/mlp.csv", MODEL.layers))
    other = fit_dense(read_vidur_dense(folder / "vidur_profiles/a100/meta-llama/Llama-2-7b-hf/mlp.csv", MODEL.layers))
    by_scaling = scaled(other, MODEL.layer_parameters / LLAMA_2_7B.layer_parameters)
    print(f"A100: mean error dense {dense.error:.1%}; Llama-2-7B scaled by parameters is off by ", end="")
    print(f"{by_scaling.weights_seconds / dense.weights_seconds - 1:+.1%} (weights), ", end="")
    print(f"{by_scaling.per_token_seconds / dense.per_token_seconds - 1:+.1%} (per token)")
    costs = with_host_overhead(roofline_costs(A100, dense, share, like), host)
    source = (
        f"{VIDUR} data/profiling/compute/a100/Meta-Llama-3-8B/mlp.csv (matrix products); attention and output layer: "
        f"data sheet times the efficiency of two RTX tables ({LLMSERVINGSIM}); host overhead {host * 1e3:.2f} ms, "
        "the mean of their runs"
    )
    return profile("a100-llama-3-8b", A100, costs, 8192, source)


def h100(folder: Path, share: Efficiency, like: StepCosts) -> RooflineProfile:
    """Llama-2-7B's table, scaled; there is none of Llama-3-8B."""
    table = "vidur_profiles/h100/meta-llama/Llama-2-7b-hf/mlp.csv"
    dense = fit_dense(read_vidur_dense(folder / table, LLAMA_2_7B.layers))
    print(f"H100: mean error dense {dense.error:.1%} (Llama-2-7B)")
    dense = scaled(dense, MODEL.layer_parameters / LLAMA_2_7B.layer_parameters)
    # Hopper runs FlashAttention 3; the tables' extra costs of mixed steps are FlashAttention 2's, and are left out
    costs = roofline_costs(H100, dense, share, like).model_copy(
        update={"per_mixed_decode_kv_token_seconds": None, "per_mixed_decode_seconds": None}
    )
    lone = costs.overhead_seconds + dense.weights_seconds + LONE_CONTEXT * costs.per_decode_kv_token_seconds
    host = max(0.0, LONE_DECODE_SECONDS - lone - costs.per_decode_seconds - costs.per_sampled_seconds)
    source = (
        f"{VIDUR} data/profiling/compute/h100/meta-llama/Llama-2-7b-hf/mlp.csv (matrix products, scaled by "
        f"parameters); attention and output layer: data sheet times the efficiency of two RTX tables "
        f"({LLMSERVINGSIM}); host overhead {host * 1e3:.2f} ms, so that a lone decode takes the 7.23 ms of "
        "kubernetes-sigs/inference-perf@7de5ef2 demos/kubecon-na-2025 (1 request/s)"
    )
    return profile("h100-llama-3-8b", H100, with_host_overhead(costs, host), 8192, source)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="replace the files of the package")
    asked = parser.parse_args()
    for made in build(asked.folder):
        text = yaml.safe_dump(made.model_dump(mode="json", exclude_none=True), sort_keys=False, width=110)
        print(f"\n{text}", end="")
        if asked.write:
            head = "# Made by `python -m bench.engines.profiles`; do not edit. Nothing here was measured by us.\n"
            (PROFILES / f"{made.name}.yaml").write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
