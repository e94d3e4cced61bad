"""The entry point: a table of commands, imported one at a time, and what errors become."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from patchq.errors import PatchqError

COMMANDS = {
    "init": "Make a queue in the current git repository.",
    "import": "Bring patches in: files, a quilt folder, a branch or commit range.",
    "sync": "Carry the series onto a release of upstream, and prove it.",
    "status": "Where the queue stands.",
    "series": "List the patches.",
    "show": "Show one patch.",
    "check": "Prove the series on its base; with --quilt, by quilt as well.",
    "tree": "Print the runner tree: the hash of base and series.",
    "lock": "Lock what decides how the runner behaves, and print its digest.",
    "build": "Build the runner: lay the series over upstream's own wheel.",
    "doctor": "Will it run? Checkpoint, drafter, template, artifact and nodes.",
    "cluster": "The machines it runs on: deploy, start, stop, status, logs.",
    "smoke": "Does it answer? Probes of a running server, each watched for spinning.",
    "bench": "How fast is it? Decode rate, first token and wall time of running servers.",
    "compare": "Is it slower than another? Measured in turns, judged with intervals.",
    "gate": "May it be released? By the evidence of smoke, bench and compare.",
    "release": "Numbered, signed sets of artifacts: cut, publish, verify, look back, withdraw.",
    "install": "Install a release on this machine, or on all of a cluster.",
    "rollback": "Go back to the release before.",
    "uninstall": "Remove all that install brought.",
    "support": "Pack what a maintainer needs to help: release, doctor, logs, versions.",
    "nightly": "Sync, build, deploy, smoke, bench and gate unattended, and tell people.",
    "bisect": "Which patch, release or pin did it? Tries what moved between two runners.",
    "report": "Where the queue stands: a summary, or with --html a page.",
    "new": "Add an empty patch on top, for the next edits.",
    "push": "Apply patches in the working tree.",
    "pop": "Take patches off in the working tree.",
    "goto": "Push or pop until a patch is on top.",
    "refresh": "Take the edits of the working tree into a patch.",
    "diff": "Show the edits that no patch has yet.",
    "graph": "Which patch needs which.",
    "edit": "Change a patch's header, in an editor or by options.",
    "rename": "Give a patch another name.",
    "move": "Give a patch another place in the series.",
    "split": "Take files or hunks of a patch into a new one.",
    "hold": "Keep a patch without applying it.",
    "unhold": "Apply a held patch again.",
    "delete": "Take a patch out of the series.",
    "export": "Write the queue to a branch, one commit a patch, or to an mbox.",
    "deps": "What the runner is made of beside upstream: list, check, outdated, update.",
    "pr": "Upstream's pull requests: track, import, refresh, find, refuse.",
    "decide": "Answer what a sync asked about a patch.",
    "upstream": "Where releases and history come from: add-git.",
    "history": "What was done, and what became of a patch.",
    "undo": "Take the last change back.",
    "slice": "Cut an EXL3 checkpoint for the ranks of a cluster: plan, run, verify.",
}
MODULES = {"import": "import_"}
INTERRUPTED = 130

# What points git to another repository: ours is the one around the working directory.
FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
)


class Commands(TyperGroup):
    """Imports a command's module when that command is called; help needs only the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"patchq.cli.{MODULES.get(cmd_name, cmd_name)}")
        about = getattr(module, "ABOUT", COMMANDS[cmd_name])
        app = typer.Typer(name=cmd_name, add_completion=False, rich_markup_mode=None, help=about)
        # A module has one `command`, or `commands` of its own below its name.
        commands = getattr(module, "commands", None) or {cmd_name: module.command}
        if hasattr(module, "commands"):
            app.callback()(lambda: None)  # or one alone would take its group's name
        for name, command in commands.items():
            app.command(name, help=command.__doc__)(command)
        return get_command(app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            from patchq.cli.peers import hint

            ctx.fail(f"No such command {args[0]!r}. {hint(args[0], list(COMMANDS))}".strip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Carry a queue of patches over moving upstream releases.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from patchq import __version__

        typer.echo(f"patchq {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_version, help="Print the version."
    ),
) -> None:
    return None


def main() -> int:
    """Run the command line; the exit status (see patchq.errors)."""
    code = _run()
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_stdout()
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"patchq: stdout cannot be written: {error.strerror}\n")
            return code or PatchqError.exit_code
    return code


def _drop_stdout() -> None:
    """What could not be written is not tried again at the end, where Python complains of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> int:
    for name in FOREIGN:
        os.environ.pop(name, None)
    # A short life: with the collector on, parsing two hundred files takes a third longer.
    gc.disable()
    try:
        result = app(prog_name="patchq", standalone_mode=False)
        if result == INTERRUPTED:
            # typer makes this of a Ctrl-C, and says nothing.
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except PatchqError as problem:
        return _problem(problem)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("interrupted; nothing is half done\n")
        return INTERRUPTED
    except typer.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        # `patchq series | head`: the reader has enough.
        _drop_stdout()
        return 0
    except Exception as bug:
        if hasattr(bug, "format_message") and hasattr(bug, "exit_code"):
            bug.show()  # type: ignore[attr-defined]
            return int(bug.exit_code)
        return _bug(bug)


def _problem(problem: PatchqError, log: str = "") -> int:
    from patchq.paths import show

    if "--json" in sys.argv[1:]:
        from patchq.render import jsons

        sys.stdout.write(jsons.dump(jsons.error(problem, log)) + "\n")
    else:
        sys.stderr.write(f"patchq: {show(problem.message)}\n")
        if problem.hint:
            sys.stderr.write(f"        {show(problem.hint)}\n")
    return problem.exit_code


def _bug(bug: Exception) -> int:
    """Ours: a log that can be pasted, named in one sentence."""
    if isinstance(bug, OSError):
        where = f" ({bug.filename})" if bug.filename else ""
        return _problem(
            PatchqError(
                f"the system refused: {bug.strerror or bug}{where}",
                "nothing was changed; make room or correct the permissions, then run it again",
            )
        )
    import platform
    import traceback

    from patchq import __version__
    from patchq.config import cache_dir

    log = cache_dir() / "last-crash.log"
    told = "".join(traceback.format_exception(bug))
    about = f"patchq {__version__}, Python {platform.python_version()}, {platform.platform()}"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{about}\narguments: {sys.argv[1:]}\n\n{told}", encoding="utf-8")
        name = str(log)
    except OSError:
        sys.stderr.write(told)
        name = ""
    problem = PatchqError(
        f"patchq has a bug: {type(bug).__name__}: {bug}",
        f"please report it with {name}" if name else "please report it with the text above",
        exit_code=3,
    )
    return _problem(problem, name)


if __name__ == "__main__":
    sys.exit(main())
