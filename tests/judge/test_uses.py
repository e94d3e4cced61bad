"""What lines of Python use of the modules around them, seen from the sources alone."""

from __future__ import annotations

from textwrap import dedent

from patchq.judge.resolve import World
from patchq.judge.surface import Surface, read
from patchq.judge.uses import uses

CONFIG = """
    from dataclasses import dataclass

    @dataclass
    class CacheConfig:
        block_size: int = 16

        def blocks(self, tokens: int, *, spare: int = 0) -> int: ...

    @dataclass
    class Config:
        cache: "CacheConfig | None"
        name: str = ""

        @classmethod
        def of(cls, path): ...
"""


def told(code: str, **modules: str) -> list[str]:
    """`line: what is wrong` of each failing use in `code`, the module `lib.ours`."""
    sources = {"lib": "", "lib.config": CONFIG, **{f"lib.{k}": v for k, v in modules.items()}}
    text = dedent(code)
    surfaces = {
        name: read(name, dedent(source).encode(), package=name == "lib")
        for name, source in {**sources, "lib.ours": text}.items()
    }

    def surface(name: str) -> Surface | None:
        return surfaces.get(name)

    lines = frozenset(range(1, text.count("\n") + 2))
    found = uses("lib.ours", text.encode(), lines, World(surface), package=False)
    return [f"{use.line}: {use.says}" for use in found if use.state != "found"]


def test_an_import_of_a_name_that_is_not_there() -> None:
    assert told("from lib.config import Config, Gone") == ["1: lib.config has no 'Gone'"]


def test_an_import_of_a_module_that_is_not_there() -> None:
    assert told("import lib.gone.deeper\nfrom .away import x") == [
        "1: lib has no 'gone'",
        "2: lib has no 'away'",
    ]


def test_a_package_that_is_not_read_is_nobodys_finding() -> None:
    assert told("from torch.nn import Gone\nimport numpy as np\nnp.gone(1)") == []


def test_an_attribute_is_followed_through_annotations() -> None:
    code = """
        from lib.config import Config
        def run(config: Config, other):
            size = config.cache.block_size
            config.cache.block_sise
            other.anything.at.all
    """
    assert told(code) == ["5: lib.config.CacheConfig has no 'block_sise'"]


def test_an_attribute_is_followed_through_what_init_keeps() -> None:
    code = """
        from lib.config import Config
        class Runner:
            def __init__(self, config: Config):
                self.cache = config.cache
            def run(self):
                self.cache.block_size
                self.cache.gone
                self.late = 1
            def again(self):
                return self.late + self.never
    """
    assert told(code) == [
        "8: lib.config.CacheConfig has no 'gone'",
        "11: lib.ours.Runner has no 'never'",
    ]


def test_a_local_has_the_type_of_its_one_value() -> None:
    code = """
        from lib.config import CacheConfig, Config
        def run(flag):
            cache = CacheConfig(16)
            cache.gone
            changing = CacheConfig()
            if flag:
                changing = Config
            changing.whatever
    """
    assert told(code) == ["5: lib.config.CacheConfig has no 'gone'"]


def test_an_import_inside_of_a_function_counts_there() -> None:
    code = """
        def run():
            from lib.config import Config
            Config.gone
    """
    assert told(code) == ["4: lib.config.Config has no 'gone'"]


def test_a_call_that_does_not_fit() -> None:
    code = """
        from lib.config import CacheConfig, Config
        cache = CacheConfig()
        def run(cache: CacheConfig, given):
            cache.blocks(1)
            cache.blocks(1, spare=2)
            cache.blocks()
            cache.blocks(1, 2)
            cache.blocks(1, extra=2)
            Config.of("path")
            Config.of()
            Config(cache=None, nam="x")
            cache.blocks(*given)
            cache.blocks(**given)
    """
    assert told(code) == [
        "7: lib.config.CacheConfig.blocks needs 'tokens', which the call does not give",
        "8: lib.config.CacheConfig.blocks takes 1 positional arguments, the call gives 2",
        "9: lib.config.CacheConfig.blocks has no parameter 'extra'",
        "11: lib.config.Config.of needs 'path', which the call does not give",
        "12: lib.config.Config has no field 'nam'",
    ]


def test_a_name_that_the_function_no_longer_has() -> None:
    code = """
        def run(tokens):
            for token in tokens:
                print(token, len(tokenz))
            return [each for each in tokens]
    """
    assert told(code) == ["4: lib.ours has no 'tokenz'"]


def test_guarded_uses_were_written_for_trees_that_lack_them() -> None:
    code = """
        from lib import config
        try:
            from lib.config import Newer
        except ImportError:
            Newer = None
        if hasattr(config, "extra"):
            config.extra()
        size = config.more if hasattr(config, "more") else 1
    """
    assert told(code) == []


def test_names_come_through_star_imports_and_reexports() -> None:
    modules = {"api": "from lib.config import *\nfrom lib.config import Config as C"}
    assert told("from lib.api import C, CacheConfig, Nothing", **modules) == [
        "1: lib.api has no 'Nothing'"
    ]


def test_a_base_class_that_is_not_read_may_have_everything() -> None:
    base = "import torch\nclass Layer(torch.nn.Module):\n    def forward(self): ..."
    code = """
        from lib.layer import Layer
        def run(layer: Layer):
            layer.forward()
            layer.cuda()
    """
    sources = {"lib.layer": base}
    text = dedent(code)
    surfaces = {
        name: read(name, source.encode(), package=False)
        for name, source in {"lib": "", **sources, "lib.ours": text}.items()
    }
    lines = frozenset(range(1, 9))
    found = uses("lib.ours", text.encode(), lines, World(surfaces.get), package=False)
    missing = [use for use in found if use.state != "found"]
    assert [(use.says, use.unsure) for use in missing] == [("lib.layer.Layer has no 'cuda'", True)]


def test_only_the_wanted_lines_are_looked_at() -> None:
    text = b"from lib import a\nfrom lib import b\n"
    world = World(lambda name: Surface({}) if name == "lib" else None)
    found = uses("lib.ours", text, frozenset({2}), world, package=False)
    assert [use.says for use in found] == ["lib has no 'b'"]


def test_what_is_no_python_has_no_uses() -> None:
    world = World(lambda name: None)
    assert uses("m", b"def (:\n", frozenset({1}), world, package=False) == []
    assert uses("m", b"x = '\xff'\n", frozenset({1}), world, package=False) == []
    assert read("m", b"def (:\n", package=False) is None
