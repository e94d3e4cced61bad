"""How a checkpoint is cut for a number of ranks: pure, from headers alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from patchq.errors import UsageError
from patchq.exl3 import cuts
from patchq.exl3.collector import aside
from patchq.exl3.families import Families, Rule
from patchq.exl3.families import number as config_number
from patchq.exl3.model import Checkpoint, Cut, Module, Plan, Refusal
from patchq.exl3.modules import Found, find

MAX_RANKS = 64
_NUMBER = re.compile(r"\.[0-9]+(?=\.|$)")


def pattern(name: str) -> str:
    """`name` with every number of a layer or an expert as `*`."""
    return _NUMBER.sub(".*", name)


@aside()
def plan(
    checkpoint: Checkpoint,
    tp: int,
    families: Families,
    *,
    uneven: bool = False,
    found: Found | None = None,
) -> Plan:
    """The plan for `tp` ranks. What cannot be cut is in `refused`, with all its reasons.

    `found` is what `modules.find` says of the checkpoint, where that is known already.
    Raises UsageError for a number of ranks that makes no sense.
    """
    if not 2 <= tp <= MAX_RANKS:
        raise UsageError(f"--tp {tp}: a checkpoint is cut for 2 to {MAX_RANKS} ranks", "--tp 2")
    found = found or find(checkpoint)
    refused = list(found.refused)
    rules: dict[str, Rule | None] = {}
    forms: dict[str, str] = {}
    known: dict[tuple[str, int, int], Cut | cuts.NoCut] = {}
    made: dict[str, Cut] = {}
    reasons: dict[str, str] = {}
    warnings: dict[str, None] = {}
    for name, module in found.modules.items():
        form = forms[name] = pattern(name)
        if form not in rules:
            rules[form] = families.find(form)
        rule = rules[form]
        if rule is None:
            refused.append(_unknown(module, form))
            continue
        key = (form, module.k, module.n)
        if key not in known:
            known[key] = _cut(rule, module, tp, checkpoint.config, uneven=uneven)
            warnings.update(dict.fromkeys(_torn(rule, form, tp, checkpoint.config)))
        how = known[key]
        if isinstance(how, cuts.NoCut):
            refused.append(Refusal(f"{name}.trellis", str(how), how.hint))
            continue
        made[name] = how
        reasons[name] = rule.why
    refused += _mlp(found.modules, {name: rules[form] for name, form in forms.items()})
    refused += storage(checkpoint, found.modules)
    if not refused and all(how.split == "whole" for how in made.values()):
        refused.append(Refusal("", "none of its layers is cut: every rank would read all of it"))
    return Plan(
        checkpoint,
        tp,
        uneven,
        found.modules,
        made,
        reasons,
        {} if refused else cuts.Pieces(found.modules, made, tp),
        tuple(refused),
        tuple(warnings),
        forms,
        found.rest,
    )


def _cut(
    rule: Rule, module: Module, tp: int, config: Mapping[str, Any], *, uneven: bool
) -> Cut | cuts.NoCut:
    try:
        return cuts.cut(rule, module.k, module.n, tp, config, uneven=uneven)
    except cuts.NoCut as problem:
        return problem


def _unknown(module: Module, form: str) -> Refusal:
    last = form.rpartition(".")[2]
    return Refusal(
        f"{module.name}.trellis",
        f"no family says how {form} ({module.k} x {module.n}) is cut",
        f'give --families FILE with [[rule]] modules = ["{last}"] and split = "column", "row" or'
        ' "whole"',
    )


def _torn(rule: Rule, form: str, tp: int, config: Mapping[str, Any]) -> Iterable[str]:
    heads = config_number(config, rule.heads) if rule.heads else None
    if heads is not None and cuts.tears(heads, tp):
        yield f"{form}: {heads} heads ({rule.heads}) are no equal shares for {tp} ranks"


def _mlp(modules: Mapping[str, Module], rules: Mapping[str, Rule | None]) -> list[Refusal]:
    """Within one parent, the outputs of gate and up are the inputs of down."""
    inner: dict[str, dict[int, Module]] = defaultdict(dict)
    problems = []
    for name, module in modules.items():
        rule = rules[name]
        if rule is None or not rule.mlp:
            continue
        size = module.k if rule.mlp == "out" else module.n
        if rule.mlp == "in" and isinstance(rule.parts, int):
            size //= rule.parts
        sizes = inner[name.rpartition(".")[0]]
        sizes[size] = module
        if len(sizes) > 1:
            other = next(each for each in sizes.values() if each is not module)
            problems.append(
                Refusal(
                    f"{name}.trellis",
                    f"its {module.k} x {module.n} does not fit {other.name},"
                    f" {other.k} x {other.n}, in one MLP",
                    "download the checkpoint again",
                )
            )
    return problems


def storage(checkpoint: Checkpoint, modules: Mapping[str, Module]) -> list[Refusal]:
    """`tensor_storage` of quantization_config.json says the same as the headers."""
    listed = checkpoint.quantization.get("tensor_storage")
    if not isinstance(listed, dict):
        return []
    problems = []
    for name, entry in listed.items():
        if not isinstance(entry, dict) or entry.get("quant_format") != "exl3":
            continue
        module = modules.get(name)
        bits = entry.get("bits_per_weight")
        if module is None:
            why = "quantization_config.json lists it, no shard holds it"
        elif isinstance(bits, int | float) and bits != module.bits:
            why = f"it has {module.bits} bits, quantization_config.json says {bits}"
        else:
            continue
        problems.append(Refusal(f"{name}.trellis", why, "download the checkpoint again"))
    return problems
