"""`patchq rollback`."""

from __future__ import annotations

from patchq.cli.options import DryRun, InstalledCluster, Json


def command(cluster: InstalledCluster = None, dry_run: DryRun = False, json: Json = False) -> int:
    """Go back to the release before, on all machines at once; a second time, it is undone.

    Takes seconds: nothing is downloaded or copied. What runs goes on until it is started again.

    patchq rollback
    """
    from patchq.cli.out import give
    from patchq.release import installed
    from patchq.release.rollback import rollback
    from patchq.render import install as render
    from patchq.render.progress import Bar

    with Bar() as bar:
        report = rollback(installed.cluster(cluster), dry_run=dry_run, progress=bar)
    give(json, lambda: render.rolled_back_json(report), lambda: render.rolled_back(report))
    return 0
