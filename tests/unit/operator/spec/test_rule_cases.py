"""Each rule on one accepted and one rejected spec: the command line's side of rule_cases.yaml."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.messages import RULES, SHAPE_RULES
from goodput.operator.spec.notbuilt import unbuilt_problems
from goodput.operator.spec.parse import parse_spec
from goodput.operator.spec.resolve import resolve
from goodput.operator.spec.rules import shape_problems

CASES = yaml.safe_load((Path(__file__).parent / "rule_cases.yaml").read_text())
RULE_CASES = [pytest.param(case, id=case["rule"]) for case in CASES["rules"]]
BOUND_CASES = [pytest.param(case, id=case["field"]) for case in CASES["bounds"]]
Build = Callable[..., dict[str, Any]]
UID = "0123456789abcdef"


def test_every_rule_has_a_case() -> None:
    assert {case["rule"] for case in CASES["rules"]} == {rule.id for rule in SHAPE_RULES}


@pytest.mark.parametrize("case", RULE_CASES)
def test_a_broken_rule_is_refused_in_the_words_of_the_table(case: dict[str, Any], sweep: Build) -> None:
    rule = RULES[case["rule"]]
    spec = parse_spec(sweep(**case["rejected"]))
    problems = list(shape_problems(case.get("name", "t"), spec, in_cluster=True))
    broken = [problem for problem in problems if (problem.message, problem.fix) == (rule.message, rule.fix)]
    assert broken
    assert broken[0].field.startswith(rule.field.partition("[]")[0])


@pytest.mark.parametrize("case", RULE_CASES)
def test_its_counterpart_is_accepted(case: dict[str, Any], sweep: Build) -> None:
    document = sweep(case.get("accepted_name", "t"), **case["accepted"])
    if case.get("unbuilt"):  # well-formed, and refused for another reason
        spec = parse_spec(document)
        assert not list(shape_problems("t", spec, in_cluster=True))
        assert list(unbuilt_problems(spec))
    else:
        assert resolve(document, uid=UID).configs


@pytest.mark.parametrize("case", BOUND_CASES)
def test_what_the_schema_refuses_is_refused_with_its_field(case: dict[str, Any], sweep: Build) -> None:
    with pytest.raises(SpecError) as refused:
        resolve(sweep(**case["rejected"]), uid=UID)
    assert any(problem.field.startswith(case["field"]) for problem in refused.value.problems)
    assert resolve(sweep(**case["accepted"]), uid=UID).configs
