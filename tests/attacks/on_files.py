"""Attacks by files that somebody sends: tests, findings, known findings, herd's files."""

from __future__ import annotations

from tests.attacks.attack import ROOT, Place, attack


@attack("to read a file that the victim can read, and see it in an error")
def a_test_that_is_a_link_to_a_private_file(place: Place) -> str:
    secret = place.write("secret", "correct horse battery staple\n")
    (place.folder / "test.yaml").symlink_to(secret)
    ended = place.run("oracle", place.folder / "test.yaml")
    assert ended.code == 2
    assert "battery" not in ended.err + ended.out
    return ended.error.replace(str(place.folder), ".")


@attack("to make a name of a test a path")
def a_test_named_like_a_path(place: Place) -> str:
    text = (ROOT / "corpus/litmus/SB.yaml").read_text()
    path = place.write("test.yaml", text.replace("name: SB", "name: ../outside/precious"))
    ended = place.run("replay", path, "--executors", "native", "--count", "64")
    assert ended.code == 2
    return ended.error.replace(str(place.folder), ".")
