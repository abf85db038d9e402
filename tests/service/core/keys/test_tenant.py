"""Whose share a request comes out of."""

from __future__ import annotations

from service.core.keys.caller import ANONYMOUS, Caller, tenant_of


def test_keys_of_one_namespace_are_one_tenant() -> None:
    first, second = Caller("a", "physics", frozenset()), Caller("b", "physics", frozenset())
    assert tenant_of(first, "10.0.0.1") == tenant_of(second, "10.0.0.2")


def test_without_keys_an_address_is_one() -> None:
    assert tenant_of(ANONYMOUS, "10.0.0.1") == tenant_of(ANONYMOUS, "10.0.0.1")
    assert tenant_of(ANONYMOUS, "10.0.0.1") != tenant_of(ANONYMOUS, "10.0.0.2")


def test_a_site_has_many_addresses_and_one_share() -> None:
    assert tenant_of(ANONYMOUS, "2001:db8::1") == tenant_of(ANONYMOUS, "2001:db8::ffff:2")
    assert tenant_of(ANONYMOUS, "2001:db8::1") != tenant_of(ANONYMOUS, "2001:db8:0:1::1")
    assert tenant_of(ANONYMOUS, "fe80::1%eth0") == tenant_of(ANONYMOUS, "fe80::2%eth0")


def test_an_address_of_version_4_is_the_same_on_a_socket_of_both_versions() -> None:
    assert tenant_of(ANONYMOUS, "::ffff:10.0.0.1") == tenant_of(ANONYMOUS, "10.0.0.1")
    assert tenant_of(ANONYMOUS, "::ffff:10.0.0.1") != tenant_of(ANONYMOUS, "::ffff:10.0.0.2")


def test_a_namespace_called_like_an_address_is_another_tenant() -> None:
    assert tenant_of(Caller("a", "10.0.0.1", frozenset()), "10.0.0.1") != tenant_of(ANONYMOUS, "10.0.0.1")


def test_a_unix_socket_has_no_address() -> None:
    assert tenant_of(ANONYMOUS, "") == "address "
