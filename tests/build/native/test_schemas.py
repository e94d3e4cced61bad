"""Operators and the calls that go with them, or do not."""

from __future__ import annotations

import pytest

from patchq.build.native import schemas
from patchq.build.native.model import Facts
from patchq.build.native.plan import plan
from patchq.build.native.schemas import Call, Finding, operator
from patchq.render import native as render
from tests.build.native.sources import VLLM, Files

OLD = 'float by=1.0, *, int[2]? sizes=None) "\n      "-> ()'


def found(schema: str, python: str | None = None) -> list[Finding]:
    """The findings where the end of the operator's schema is `schema`."""
    new = dict(VLLM)
    new["csrc/bindings.cpp"] = new["csrc/bindings.cpp"].replace(OLD, schema)
    assert new != VLLM
    if python is not None:
        new["vllm/ops.py"] = f"import torch\n\n{python}\n"
    return list(schemas.findings(Files(VLLM), Files(new)))


def test_registrations_are_read() -> None:
    ((key, each),) = schemas.operators(Files(VLLM)).items()
    assert key == ("_C", "scale")
    assert [(p.kind, p.name, p.default, p.keyword) for p in each.parameters] == [
        ("Tensor!", "out", False, False),
        ("Tensor", "a", False, False),
        ("float", "by", True, False),
        ("int[2]?", "sizes", True, True),
    ]
    assert each.returns == "()" and each.line == 5 and each.path == "csrc/bindings.cpp"


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("float by) -> ()", "the schema changed, and this call did not"),
        ("float by=1.0, *, int[2]? sizes=None, bool fast=False) -> ()", ""),
        (") -> ()", "it gives 3 arguments, the schema takes 2"),
        ("float by, int mode) -> ()", "it does not give 'mode', which the schema asks for"),
        ("float by=1.0, *, int n) -> ()", "it does not give 'n', which the schema asks for"),
        ("int by=1) -> ()", "the schema changed, and this call did not"),
        ("float by=1.0, *, int[2]? sizes=None) -> Tensor", "the schema changed"),
    ],
)
def test_a_schema_that_changed(schema: str, says: str) -> None:
    made = found(schema)
    assert [each.says.startswith(says) for each in made] == ([True] if says else [])
    assert all(each.call.line == 4 and each.operator == "torch.ops._C.scale" for each in made)


def test_a_caller_that_follows() -> None:
    assert found("int by, int n) -> ()", "torch.ops._C.scale(o, a, 1, n=2)") == []
    (one,) = found("int by, int n) -> ()", "torch.ops._C.scale.default(o, a, 1, m=2)")
    assert one.says == "it gives 'm', which the schema does not have" and one.certain
    (two,) = found("int by, int n) -> ()", "torch.ops._C.scale(o, a, 1, 2, a=3)")
    assert two.says == "it gives 'a' twice"
    assert found("int by, int n) -> ()", "torch.ops._C.scale(*given)") == []


def test_an_operator_that_is_gone() -> None:
    new = {**VLLM, "csrc/bindings.cpp": ""}
    (one,) = schemas.findings(Files(VLLM), Files(new))
    assert one.says == "the operator is gone, and this still calls it" and one.certain


def test_overloads_are_operators_of_their_own() -> None:
    new = dict(VLLM)
    new["csrc/bindings.cpp"] = new["csrc/bindings.cpp"].replace('"scale(', '"scale.out(')
    (one,) = schemas.findings(Files(VLLM), Files(new))
    assert one.certain, "the plain one is gone"
    made = operator("_C", "scale.out(Tensor a) -> ()")
    assert made and schemas.misfits(made, Call("_C", "scale.out", 1, (), "", "", 1)) == ""


def test_what_is_no_schema_is_left_out() -> None:
    assert operator("_C", "scale") is None
    made = operator("_C", 'f(str a="x, y", Tensor(a!)[] b=[1, 2]) -> (Tensor, Tensor)')
    assert made and [each.name for each in made.parameters][-1] == "b"


def test_a_finding_shows_both_lines() -> None:
    new = dict(VLLM)
    new["csrc/bindings.cpp"] = new["csrc/bindings.cpp"].replace(OLD, "int n) -> ()")
    made = plan(Files(VLLM), Files(new), ["csrc/bindings.cpp"], Facts("cuda", "12.1a", "13.0"))
    text = "\n".join(render.lines(made))
    assert "csrc/bindings.cpp:5: scale(Tensor! out, Tensor a, int n) -> ()" in text
    assert "vllm/ops.py:4: torch.ops._C.scale(out, a, 2.0)" in text
    (told,) = render.as_json(made)["findings"]
    assert told["old"]["line"] == told["new"]["line"] == 5 and told["call"]["path"] == "vllm/ops.py"
