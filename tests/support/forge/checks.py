"""GitHub's own descriptions: what a request or an answer may look like, and who says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from graphql import GraphQLScalarType, GraphQLSchema, build_schema
from openapi_core import OpenAPI
from openapi_core.contrib.werkzeug import WerkzeugOpenAPIRequest, WerkzeugOpenAPIResponse
from werkzeug.wrappers import Request, Response

ROOT = Path(__file__).resolve().parents[3]
DESCRIPTIONS = ROOT / "build" / "github"


def bring_descriptions() -> None:
    """See to build/github/ (`make test` did it already; this is for pytest alone)."""
    script = ROOT / "ci" / "github-descriptions.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@cache
def graphql_schema() -> GraphQLSchema:
    """GitHub's schema (its text defines a field twice, hence assumed valid) with strict scalars."""
    text = (DESCRIPTIONS / "schema.graphql").read_text(encoding="utf-8")
    schema = build_schema(text, assume_valid=True, assume_valid_sdl=True, no_location=True)
    for name, pattern in {
        "DateTime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        "GitObjectID": r"[0-9a-f]{40}",
        "URI": r"https?://\S+",
    }.items():
        scalar = schema.type_map[name]
        assert isinstance(scalar, GraphQLScalarType)
        scalar.coerce_output_value = _strict(name, re.compile(pattern))
    return schema


def _strict(name: str, pattern: re.Pattern[str]) -> Any:
    def serialize(value: Any) -> str:
        assert isinstance(value, str) and pattern.fullmatch(value), f"{value!r} is no {name}"
        return value

    return serialize


class RestChecks:
    """GitHub's description of REST at the address `base`; what breaks it stands in `broken`."""

    def __init__(self, base: str) -> None:
        self.spec: dict[str, Any] = json.loads((DESCRIPTIONS / "rest.json").read_bytes())
        self.spec["servers"] = [{"url": base}]
        self._correct(base)
        self.openapi = OpenAPI.from_dict(self.spec)
        self.broken: list[str] = []

    def _correct(self, base: str) -> None:
        """What the description leaves open, or has otherwise than GitHub."""
        paths = self.spec["paths"]
        uploads = paths["/repos/{owner}/{repo}/releases/{release_id}/assets"]["post"]
        uploads["servers"] = [{"url": base.replace("/api/v3", "/api/uploads")}]
        # openapi-core takes no slash inside a parameter.
        ref = paths.pop("/repos/{owner}/{repo}/git/ref/{ref}")
        paths["/repos/{owner}/{repo}/git/ref/tags/{ref}"] = ref
        # "an empty asset with a state of starter" is in the words about uploads only.
        states = self.spec["components"]["schemas"]["release-asset"]["properties"]["state"]
        states["enum"].append("starter")
        # "nullable", and null is not among its values.
        reasons = self.spec["components"]["schemas"]["issue"]["properties"]["state_reason"]
        reasons["enum"].append(None)

    def request(self, request: Request) -> str | None:
        """What is wrong with a request, or None."""
        for error in self.openapi.iter_request_errors(WerkzeugOpenAPIRequest(request)):
            return self._wrong(request, "request", error)
        return None

    def response(self, request: Request, response: Response) -> None:
        errors = self.openapi.iter_response_errors(
            WerkzeugOpenAPIRequest(request), WerkzeugOpenAPIResponse(response)
        )
        for error in errors:
            self._wrong(request, f"answer {response.status_code}", error)

    def _wrong(self, request: Request, what: str, error: Exception) -> str:
        cause = error.__cause__ or error
        details = getattr(cause, "schema_errors", None) or ()
        found = [f"{each.json_path}: {each.message[:200]}" for each in details]
        said = "; ".join(found) or str(cause)[:300]
        text = f"{what} {request.method} {request.full_path}: {said}"
        self.broken.append(text)
        return text

    def sample(self, schema: str, /, **known: Any) -> dict[str, Any]:
        """An object of a schema: what it requires, harmless values where not `known`."""
        made = self._sample({"$ref": f"#/components/schemas/{schema}"})
        assert isinstance(made, dict)
        return {**made, **known}

    def label(self) -> dict[str, Any]:
        """A label as pull requests have them; its schema stands inside theirs."""
        pull = self.spec["components"]["schemas"]["pull-request-simple"]
        made = self._sample(pull["properties"]["labels"]["items"])
        assert isinstance(made, dict)
        return made

    def _sample(self, schema: dict[str, Any]) -> Any:
        while "$ref" in schema:
            schema = self.spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if schema.get("nullable"):
            return None
        for word in ("allOf", "oneOf", "anyOf"):
            if word in schema and "properties" not in schema:
                return self._sample(schema[word][0])
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        match kind:
            case "object":
                properties = schema.get("properties", {})
                return {
                    name: self._sample(properties[name])
                    for name in schema.get("required", ())
                    if name in properties
                }
            case "array":
                return []
            case "integer" | "number":
                return 1
            case "boolean":
                return False
        match schema.get("format"):
            case "uri":
                return "https://api.github.com/"
            case "date-time":
                return "2026-01-05T09:00:00Z"
        return "x"
