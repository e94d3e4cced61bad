"""A chat template rendered as transformers 5.24 does it (utils/chat_template_utils.py).

A template is a stranger's program: it runs in jinja2's sandbox, and in bounds on its steps, its
memory and what it writes, for the sandbox stops neither a loop nor a string that doubles itself.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from patchq.doctor.conversations import NOW, TOKENS, Conversation

if TYPE_CHECKING:
    from jinja2 import Environment, Template

MAX_STEPS = 1_000_000
"""Lines of Python that one rendering may run; a conversation takes some thousand."""
MAX_TEXT = 4_000_000
MAX_MEMORY = 512 << 20
_LARGEST = 1_000_000
"""Of a product: items of a sequence, bits of a number."""


class Unrenderable(Exception):
    """The template is wrong, or out of bounds; one sentence."""


class Refused(Exception):
    """The template itself refuses the conversation (`raise_exception`), with its own words."""


class ChatTemplate:
    """A compiled template. Raises Unrenderable where it is none."""

    def __init__(self, source: str) -> None:
        with _bounded(steps=None):
            self._template: Template = _environment().from_string(source)

    def render(self, conversation: Conversation, **values: Any) -> str:
        """The prompt, up to where the model goes on. Raises Unrenderable or Refused."""
        given = {
            **TOKENS,
            "messages": [_aliased(message) for message in conversation.messages],
            "tools": list(conversation.tools) or None,
            "documents": None,
            "add_generation_prompt": True,
            **conversation.values,
            **values,
        }
        written: list[str] = []
        size = 0
        with _bounded(MAX_STEPS):
            for part in self._template.generate(given):
                size += len(part)
                if size > MAX_TEXT:
                    raise Unrenderable(f"it writes more than {MAX_TEXT} characters")
                written.append(part)
        return "".join(written)


def _aliased(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A thought has two names, of which templates read either."""
    thought = message.get("reasoning_content")
    return message if thought is None else {"thinking": thought, **message}


def _environment() -> Environment:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Bounded(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**"})

        def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
            if _extent(operator, left, right) > _LARGEST:
                raise Unrenderable(f"it computes {operator} of numbers beyond all use")
            return super().call_binop(context, operator, left, right)

    class Generation(Extension):
        """`{% generation %}` marks what the assistant said, for training; here it is a block."""

        tags = frozenset({"generation"})  # type: ignore[assignment]

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def refuse(message: object) -> None:
        raise _Raised(str(message))

    class _Raised(TemplateError, Refused):
        pass

    made = Bounded(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = NOW.strftime
    return made


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """transformers' own filter: jinja2's escapes what HTML would read."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _extent(operator: str, left: Any, right: Any) -> int:
    """About how large the result is."""
    for one, other in ((left, right), (right, left)):
        if operator == "*" and isinstance(one, str | list | tuple) and isinstance(other, int):
            return len(one) * max(other, 0)
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length()
        return bits * max(right, 0) if operator == "**" else bits + right.bit_length()
    return 0


@contextmanager
def _bounded(steps: int | None) -> Iterator[None]:
    """In bounds of steps and memory, and all that goes wrong as Unrenderable."""
    from jinja2 import TemplateError, TemplateSyntaxError

    left = steps or 0

    def trace(frame: object, event: str, arg: object) -> Callable[..., Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise Unrenderable(f"it does not end within {steps} steps")
        return trace

    before = sys.gettrace()
    with _memory():
        if steps is not None:
            sys.settrace(trace)
        try:
            yield
        except (Refused, Unrenderable):
            raise
        except TemplateSyntaxError as problem:
            raise Unrenderable(f"line {problem.lineno}: {_short(problem)}") from None
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
            raise Unrenderable(_short(problem)) from None
        except (AttributeError, RecursionError, AssertionError, SyntaxError) as problem:
            raise Unrenderable(_short(problem)) from None
        except MemoryError:
            raise Unrenderable(f"it takes more than {MAX_MEMORY >> 20} MB of memory") from None
        finally:
            sys.settrace(before)


@contextmanager
def _memory() -> Iterator[None]:
    """No more than MAX_MEMORY beside what there is already, where the system can say that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        yield
        return
    wanted = now + MAX_MEMORY
    bounds = [each for each in (wanted, soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _short(problem: BaseException) -> str:
    told = " ".join(str(problem).split())
    return told[:200].rstrip(".") or type(problem).__name__
