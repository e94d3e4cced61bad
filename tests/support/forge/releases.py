"""Releases over REST, uploads on their own address, and downloads by anybody."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response
from werkzeug.wsgi import wrap_file

from tests.support.forge.commits import iso
from tests.support.forge.repo import Repo
from tests.support.forge.shelf import Asset, Refused, Release

if TYPE_CHECKING:
    from tests.support.forge.server import Forge

UPLOADS = "/api/uploads"
PATH = re.compile(
    r"/repos/([^/]+/[^/]+)/(?:git/ref/tags/(?P<ref>.+)|releases(?:"
    r"/tags/(?P<tag>[^/]+)|/(?P<latest>latest)|/assets/(?P<asset>\d+)"
    r"|/(?P<id>\d+)(?P<assets>/assets)?)?)"
)
DOWNLOAD = re.compile(
    r"/([^/]+/[^/]+)/releases/download/([^/]+)/([^/]+)|/release-assets/([^/]+/[^/]+)/(\d+)"
)


def without_file(request: Request) -> Request:
    """The request for those who look at its form: a file that it brings is not read."""
    if not request.path.startswith(UPLOADS):
        return request
    return Request({**request.environ, "wsgi.input": io.BytesIO(b"x"), "CONTENT_LENGTH": "1"})


def answer(
    request: Request, repo: Repo, found: re.Match[str], forge: Forge, *, may_write: bool
) -> Response:
    """One request about releases; `may_write`: drafts are seen, and things may change."""
    try:
        return _answer(_Asked(request, repo, forge), found, may_write)
    except Refused as no:
        errors = [{"resource": "Release", "code": no.code, "field": no.field}] if no.code else []
        return _json({"message": no.message, "errors": errors}, no.status)


class _Asked:
    """A request, and what GitHub's answers about a repository's releases look like."""

    def __init__(self, request: Request, repo: Repo, forge: Forge) -> None:
        self.request, self.repo, self.forge = request, repo, forge
        self.shelf, self.checks = repo.shelf, forge.checks
        self.method = request.method

    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.request.get_data() or b"{}"))

    def part(self, every: list[Any]) -> list[Any]:
        args = self.request.args
        size, page = int(args.get("per_page", 30)), int(args.get("page", 1))
        return every[size * (page - 1) : size * page]

    def release(self, release: Release) -> dict[str, Any]:
        at = f"{self.forge.api}/repos/{self.repo.name}/releases/{release.id}"
        uploads = at.replace("/api/v3", UPLOADS)
        page = f"{self.forge.url}/{self.repo.name}/releases/tag/{release.tag}"
        return self.checks.sample(
            "release",
            id=release.id,
            url=at,
            html_url=page.replace(release.tag, f"untagged-{release.id}") if release.draft else page,
            assets_url=f"{at}/assets",
            upload_url=f"{uploads}/assets{{?name,label}}",
            tag_name=release.tag,
            target_commitish=release.target,
            name=release.name,
            body=release.body,
            draft=release.draft,
            prerelease=release.prerelease,
            immutable=release.immutable,
            author=self.checks.sample("simple-user", login="mona"),
            created_at=iso(release.created_at),
            published_at=iso(release.published_at) if release.published_at else None,
            assets=[self.asset(release, each) for each in release.assets.values()],
        )

    def asset(self, release: Release, asset: Asset) -> dict[str, Any]:
        told = asset.sha256 and self.shelf.tells
        where = f"{self.repo.name}/releases/download/{release.tag}/{asset.name}"
        return self.checks.sample(
            "release-asset",
            id=asset.id,
            url=f"{self.forge.api}/repos/{self.repo.name}/releases/assets/{asset.id}",
            name=asset.name,
            size=asset.size,
            digest=f"sha256:{asset.sha256}" if told else None,
            state=asset.state,
            content_type="application/octet-stream",
            download_count=asset.downloads,
            browser_download_url=f"{self.forge.url}/{where}",
            created_at=iso(asset.when),
            updated_at=iso(asset.when),
        )


def _answer(asked: _Asked, found: re.Match[str], may_write: bool) -> Response:
    shelf = asked.shelf
    if asked.method != "GET" and not may_write:
        return _absent()
    if found["ref"]:
        return _ref(asked, found["ref"])
    if found["asset"]:
        return _one_asset(asked, int(found["asset"]))
    if found["id"]:
        release = shelf.releases.get(int(found["id"]))
        if release is None or (release.draft and not may_write):
            return _absent()
        return _assets(asked, release) if found["assets"] else _one(asked, release)
    if found["tag"] or found["latest"]:
        one = (
            shelf.published(found["tag"]) if found["tag"] else shelf.releases.get(shelf.latest or 0)
        )
        return _json(asked.release(one)) if one else _absent()
    if asked.method == "POST":
        return _create(asked)
    seen = [each for each in shelf.releases.values() if may_write or not each.draft]
    return _json([asked.release(each) for each in asked.part(seen[::-1])])


def _create(asked: _Asked) -> Response:
    body = asked.body()
    made = Release(
        asked.shelf.new_id(),
        body["tag_name"],
        body.get("name", ""),
        body.get("body", ""),
        asked.forge.clock.tick(),
        body.get("target_commitish", "main"),
    )
    asked.shelf.create(made)
    if not body.get("draft"):
        _change(asked, made, {**body, "draft": False})
    return _json(asked.release(made), 201)


def _change(asked: _Asked, release: Release, body: dict[str, Any]) -> None:
    def tag() -> None:
        """What is published has a tag: where there was none, it is made."""
        if not asked.repo.bare.git("tag", "--list", release.tag):
            asked.repo.tag(release.tag, at=release.target)

    asked.shelf.change(release, asked.forge.clock.tick(), body, tag)


def _one(asked: _Asked, release: Release) -> Response:
    if asked.method == "PATCH":
        _change(asked, release, asked.body())
    if asked.method == "DELETE":
        asked.shelf.delete(release)
        return Response(status=204)
    return _json(asked.release(release))


def _assets(asked: _Asked, release: Release) -> Response:
    if asked.method == "GET":
        every = [asked.asset(release, each) for each in release.assets.values()]
        return _json(asked.part(every))
    request = asked.request
    folder = asked.forge.folder / "assets"
    size = int(request.content_length or 0)
    when = asked.forge.clock.tick()
    asset = asked.shelf.begin(release, request.args["name"], size, folder, when)
    left = min(size, request.environ.get("tests.half", size))
    with asset.file.open("wb") as out:
        while left > 0 and (data := request.stream.read(min(left, 1 << 20))):
            left -= len(data)
            if data.count(0) == len(data):
                out.seek(len(data), io.SEEK_CUR)  # a large file of tests is mostly a hole
            else:
                out.write(data)
        out.truncate()
    if asset.file.stat().st_size == size:
        asked.shelf.end(asset)
    return _json(asked.asset(release, asset), 201)


def _one_asset(asked: _Asked, number: int) -> Response:
    for release in asked.shelf.releases.values():
        for asset in release.assets.values():
            if asset.id == number:
                asked.shelf.remove(release, asset)
                return Response(status=204)
    return _absent()


def _ref(asked: _Asked, name: str) -> Response:
    bare = asked.repo.bare
    done = bare.git("for-each-ref", "--format=%(objectname) %(objecttype)", f"refs/tags/{name}")
    if not done:
        return _absent()
    sha, kind = done.split()
    where = f"{asked.forge.api}/repos/{asked.repo.name}/git"
    return _json(
        {
            "ref": f"refs/tags/{name}",
            "node_id": "x",
            "url": f"{where}/refs/tags/{name}",
            "object": {"type": kind, "sha": sha, "url": f"{where}/{kind}s/{sha}"},
        }
    )


def download(request: Request, sees: Callable[[str], Repo | None]) -> Response:
    """What anybody may take: GitHub sends on to another address, which knows ranges."""
    found = DOWNLOAD.fullmatch(request.path)
    assert found
    repo = sees(found[1] or found[4])
    if repo is None:
        return Response(b"Not Found", 404)
    if found[1]:
        release = repo.shelf.published(found[2])
        asset = release.assets.get(found[3]) if release else None
        if asset is None or asset.state != "uploaded":
            return Response(b"Not Found", 404)
        return redirect(f"/release-assets/{repo.name}/{asset.id}", 302)
    every = (asset for each in repo.shelf.releases.values() for asset in each.assets.values())
    one = next(asset for asset in every if asset.id == int(found[5]))
    one.downloads += 1
    body = wrap_file(request.environ, one.file.open("rb"))
    response = Response(body, direct_passthrough=True, content_type="application/octet-stream")
    response.content_length = one.size
    response.set_etag(one.sha256)
    return response.make_conditional(request, accept_ranges=True, complete_length=one.size)


def _absent() -> Response:
    where = "https://docs.github.com/rest"
    return _json({"message": "Not Found", "documentation_url": where, "status": "404"}, 404)


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json; charset=utf-8")
