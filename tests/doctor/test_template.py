"""A chat template: the pinned one, rendered as expected, and asking the model for what is meant."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from patchq.doctor import goldens
from patchq.doctor.conversations import ALL, TOOLS
from patchq.doctor.rendering import ChatTemplate
from patchq.doctor.template import check
from patchq.errors import PatchqError
from patchq.upstream.components import Template
from tests.support.diagnosis import only, states

GLM = Path(__file__).with_name("templates") / "glm.jinja"
EFFORTS = Path(__file__).parents[1] / "runner" / "templates" / "efforts.jinja"


def pin(path: Path = GLM, sha256: str | None = None) -> Template:
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if sha256 is None else sha256
    return Template("glm", "it is the maker's", "maker/model", "690b7052", digest)


def keep(root: Path, path: Path = GLM) -> Path:
    """The golden texts of the template `glm` in a project."""
    found = goldens.render(ChatTemplate(path.read_text()))
    target = root / goldens.path_of("glm")
    target.parent.mkdir(parents=True)
    target.write_bytes(goldens.dump("glm", "0" * 64, found))
    return target


def changed(folder: Path, old: str, new: str) -> Path:
    text = GLM.read_text()
    assert old in text
    path = folder / "chat_template.jinja"
    path.write_text(text.replace(old, new))
    return path


def test_a_sound_one_is_one_line(tmp_path: Path) -> None:
    keep(tmp_path)
    (found,) = check(GLM, [pin()], tmp_path)
    assert (found.state, found.says) == (
        "ok",
        "glm at 690b7052, renders 5 conversations as expected",
    )


def test_it_is_not_the_pinned_one(tmp_path: Path) -> None:
    keep(tmp_path)
    found = only(check(GLM, [pin(sha256="ab" * 32)], tmp_path))
    assert "it is not glm at 690b7052" in found.says and "abababababab is pinned" in found.says
    assert found.remedy.startswith("take chat_template.jinja of maker/model at 690b7052")


def test_a_pin_without_a_digest_is_unknown(tmp_path: Path) -> None:
    found = only(check(GLM, [pin(sha256="")], tmp_path), "unknown")
    assert f'write sha256 = "{pin().sha256}"' in found.remedy


def test_outside_of_a_project_nothing_is_compared() -> None:
    (found,) = check(GLM)
    assert found.says == f"sha256 {pin().sha256[:12]}, renders 5 conversations"


def test_which_pin_it_is() -> None:
    other = Template("other", "why", "a/b", "1", "cd" * 32, "glm.jinja")
    first = Template("first", "why", "a/b", "1", "cd" * 32)
    assert "it is not other" in only(check(GLM, [first, other])).says, "by its name"
    assert states(check(GLM, [other, pin()])) == {"template": "ok"}, "by its digest"
    two = [Template(name, "why", "a/b", "1", "cd" * 32) for name in ("x", "y")]
    assert any("pins no such template" in each.says for each in check(GLM, two))


@pytest.mark.parametrize(
    ("old", "new", "conversation"),
    [
        ("<|user|>\n", "<|user|>", "plain"),
        ("<think></think>", "<think>\n</think>", "thinking-off"),
        ("{{ tool.function | tojson }}", "{{ tool | tojson }}", "tools"),
        ("<|observation|>", "<|tool|>", "tools"),
        ("{%- else %}<|system|>\n", "{%- else %}<|system|>", "multi-turn"),
    ],
)
def test_a_conversation_is_rendered_otherwise(
    tmp_path: Path, old: str, new: str, conversation: str
) -> None:
    keep(tmp_path)
    path = changed(tmp_path, old, new)
    found = check(path, [pin(path)], tmp_path)
    assert any(
        each.state == "fatal"
        and f"the conversation {conversation} is rendered otherwise" in each.says
        for each in found
    )


def test_no_golden_texts_yet(tmp_path: Path) -> None:
    assert "--write-goldens" in only(check(GLM, [pin()], tmp_path), "note").remedy


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"schema": "patchq.goldens/1"}',
                                     '{"schema": "patchq.goldens/1", "conversations": {"plain": 1}}'])  # fmt: skip
def test_golden_texts_that_are_none(tmp_path: Path, content: str) -> None:
    keep(tmp_path).write_text(content)
    assert "glm.json" in only(check(GLM, [pin()], tmp_path)).says


def test_a_conversation_that_the_golden_texts_do_not_have(tmp_path: Path) -> None:
    path = keep(tmp_path)
    data = json.loads(path.read_text())
    del data["conversations"]["tools"]
    path.write_text(json.dumps(data))
    assert "does not have tools" in only(check(GLM, [pin()], tmp_path), "note").says


def test_a_template_may_refuse_a_conversation(tmp_path: Path) -> None:
    """Its own refusal is as good a golden as a text."""
    refusing = changed(tmp_path, "{%- if tools -%}", '{%- if tools %}{{ raise_exception("no") }}')
    keep(tmp_path, refusing)
    assert states(check(refusing, [pin(refusing)], tmp_path)) == {"template": "ok"}
    found = only(check(GLM, [pin()], tmp_path))
    assert "tools is rendered otherwise than expected: it does not refuse it any more" in found.says


# Reasoning.


def test_a_template_that_always_opens_a_thought(tmp_path: Path) -> None:
    path = changed(tmp_path, "<think></think>", "<think>")
    found = only(check(path), "warning")
    assert found.says == "with thinking off the prompt still opens <think>"


def test_an_effort_that_is_silently_the_highest() -> None:
    found = only(check(EFFORTS), "warning")
    assert found.says == (
        "a request that gives no effort gets 'max', the highest, and so do minimal, medium, xhigh"
    )
    assert "it knows low, high, max" in found.reason and '"high"' in found.remedy


@pytest.mark.parametrize(
    "effort",
    [
        "",
        "{{ reasoning_effort | default('medium') }}",
        "{% if reasoning_effort == 'low' %}low{% elif reasoning_effort == 'high' %}high{% endif %}",
        "{{ 'Low' if reasoning_effort | default('low') == 'low' else 'High' }}",
        "{% if reasoning_effort == 'max' %}{{ raise_exception('too much') }}{% endif %}",
    ],
    ids=["deaf", "hands it on", "only named ones", "the lowest", "refuses"],
)
def test_templates_whose_default_is_not_the_highest(tmp_path: Path, effort: str) -> None:
    path = tmp_path / "t.jinja"
    path.write_text(effort + "{% for message in messages %}{{ message.content }}{% endfor %}")
    assert states(check(path)) == {"template": "ok"}


# What is no template.

DOUBLING = """{% set n = namespace(a='x') %}{% for i in range(60) %}
{% set n.a = n.a ~ n.a %}{% endfor %}"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{% if %}", "line 1: Expected an expression"),
        ("{{ messages.foo.bar }}", "has no attribute 'foo'"),
        ("{{ ''.__class__.__mro__ }}", "is unsafe"),
        ("{{ messages.append(1) }}", "is unsafe"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "steps"),
        ("{{ 'x' * 10**9 }}", "beyond all use"),
        ("{{ 9 ** 9999999 }}", "beyond all use"),
        ("{{ 'x' | center(9999999999) }}", "of memory"),
        (DOUBLING, "of memory"),
        ("{% for i in range(99999) %}" + "x" * 99 + "{% endfor %}", "characters"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{{" + "(" * 5000 + "1" + ")" * 5000 + "}}", "recursion"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ messages | nothing }}", "No filter named 'nothing'"),
    ],
)  # fmt: skip
def test_a_template_that_is_broken_or_hostile(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "t.jinja"
    path.write_text(text)
    found = only(check(path))
    assert found.says.startswith("it cannot be rendered: ") and why in found.says


def test_a_file_that_is_no_template(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe4")
    (tmp_path / "large").write_bytes(b"x" * (2 << 20))
    for name in ("latin", "large"):
        one = only(check(tmp_path / name))
        assert one.state == "fatal" and "is no chat template" in one.says and one.remedy
    for name in ("none", "."):
        with pytest.raises(PatchqError) as caught:
            check(tmp_path / name)
        assert caught.value.exit_code == 1 and caught.value.hint


# As transformers renders: the words that templates rely on.


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{ bos_token }}{% generation %}x{% endgeneration %}", "<bos>x"),
        ("{{ {'b': '<ü>', 'a': 1} | tojson }}", '{"b": "<ü>", "a": 1}'),
        ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
        ("  {% if true %}\n  x\n  {% endif %}\n", "  x\n"),
        ("{{ strftime_now('%d %B %Y') }}", "02 January 2026"),
        ("{{ nothing }}{{ tools is none }}{{ documents is none }}", "TrueTrue"),
    ],
)
def test_words_of_templates(text: str, rendered: str) -> None:
    assert ChatTemplate(text).render(ALL[0]) == rendered


def test_a_thought_has_two_names() -> None:
    text = "{% for message in messages %}{{ message.thinking }}{% endfor %}"
    assert ChatTemplate(text).render(TOOLS) == "I have to ask."
