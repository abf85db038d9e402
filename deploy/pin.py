"""Write the digest of the base image into the Dockerfile: `python -m deploy.pin`, or `make pin`.

Asks the image's registry as an engine does, by the distribution protocol of the Open Container Initiative. A tag is
moved with every repair of its image; a digest is the hash of what the tag names today, and so names nothing else ever.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

DOCKERFILE: Final = Path(__file__).parents[1] / "Dockerfile"
# Where engines look for images whose names begin with no host.
USUAL: Final = "registry-1.docker.io"
_BASE: Final = re.compile(r"^(ARG BASE=)(\S+)$", re.MULTILINE)
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
# An index names the image of each architecture: its digest is good for all of them.
_KINDS: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"
)


class NotPinned(Exception):
    """There is no digest: a sentence that says why."""


@dataclass(frozen=True)
class Reference:
    """An image's name: `registry` is empty where the name begins with no host."""

    registry: str
    repository: str
    tag: str


def reference(name: str) -> Reference:
    """The parts of `host/repository:tag@digest`, as engines read them; the digest is left out."""
    name = name.partition("@")[0]
    head, slash, rest = name.partition("/")
    hosted = bool(slash) and (head == "localhost" or bool(set(".:") & set(head)))
    repository, _, tag = (rest if hosted else name).partition(":")
    official = not hosted and "/" not in repository
    return Reference(head if hosted else "", f"library/{repository}" if official else repository, tag or "latest")


def digest(client: httpx.Client, registry: str, image: Reference) -> str:
    """What the tag names today: `sha256:…`, computed from the manifest itself. Raises NotPinned."""
    address = f"{registry}/v2/{image.repository}/manifests/{image.tag}"
    headers = {"Accept": _KINDS}
    try:
        answer = client.get(address, headers=headers)
        if answer.status_code == 401:
            headers["Authorization"] = f"Bearer {_token(client, answer.headers.get('WWW-Authenticate', ''))}"
            answer = client.get(address, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotPinned(f"cannot reach {registry}: {error}; use another one with --registry") from error
    if answer.status_code != 200:
        raise NotPinned(f"{registry} responds with {answer.status_code} for {image.repository}:{image.tag}")
    found = f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
    stated = answer.headers.get("Docker-Content-Digest", found)
    if stated != found:
        raise NotPinned(f"{registry} states the digest {stated} for the manifest, but it is {found}")
    return found


def _token(client: httpx.Client, challenge: str) -> str:
    """The token that a registry wants even of those who may read without a name: it says itself where to get one."""
    parameters = dict(_PARAMETER.findall(challenge))
    realm = parameters.pop("realm", None)
    if not challenge.lower().startswith("bearer ") or realm is None:
        raise NotPinned(f"the registry requires unsupported authentication: {challenge or 'no scheme is named'}")
    answer = client.get(realm, params=parameters)
    if answer.status_code != 200:
        raise NotPinned(f"{realm} responds with {answer.status_code} for a token")
    try:
        given = answer.json()
        return str(given.get("token") or given["access_token"])
    except (ValueError, AttributeError, KeyError):
        raise NotPinned(f"{realm} returns no token") from None


def pin(dockerfile: Path, registry: str) -> str:
    """Write the digest of ARG BASE into the Dockerfile; returns the image's new name. Raises NotPinned."""
    text = dockerfile.read_text(encoding="utf-8")
    line = _BASE.search(text)
    if line is None:
        raise NotPinned(f"{dockerfile} has no line ARG BASE=image:tag")
    name = line[2].partition("@")[0]
    image = reference(name)
    registry = registry or image.registry or USUAL
    with httpx.Client(follow_redirects=True, timeout=30) as client:
        found = digest(client, registry if "://" in registry else f"https://{registry}", image)
    dockerfile.write_text(text[: line.start(2)] + f"{name}@{found}" + text[line.end(2) :], encoding="utf-8")
    return f"{name}@{found}"


def main() -> None:
    """Pin, or say in one sentence why not, with status 1."""
    parser = argparse.ArgumentParser("deploy.pin", description=__doc__)
    parser.add_argument(
        "--registry",
        default="",
        help="host of the registry, or http://host:port (default: the host in the name of the image)",
    )
    parser.add_argument("--dockerfile", type=Path, default=DOCKERFILE)
    given = parser.parse_args()
    try:
        sys.stdout.write(f"ARG BASE={pin(given.dockerfile, given.registry)}\n")
    except NotPinned as error:
        raise SystemExit(f"nothing was pinned: {error}") from None


if __name__ == "__main__":
    main()
