"""A package index on loopback."""

from __future__ import annotations

from tests.upstream.conftest import site as site
