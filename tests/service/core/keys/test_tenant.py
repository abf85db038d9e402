"""Tenants, by which requests share limits."""

from __future__ import annotations

from service.core.keys.caller import ANONYMOUS, Caller, tenant_of


def test_keys_of_one_namespace_are_one_tenant() -> None:
    first, second = Caller("a", "physics", frozenset()), Caller("b", "physics", frozenset())
    assert tenant_of(first, "10.0.0.1") == tenant_of(second, "10.0.0.2")


def test_without_keys_each_address_is_a_tenant() -> None:
    assert tenant_of(ANONYMOUS, "10.0.0.1") == tenant_of(ANONYMOUS, "10.0.0.1")
    assert tenant_of(ANONYMOUS, "10.0.0.1") != tenant_of(ANONYMOUS, "10.0.0.2")


def test_ipv6_addresses_of_one_site_are_one_tenant() -> None:
    assert tenant_of(ANONYMOUS, "2001:db8::1") == tenant_of(ANONYMOUS, "2001:db8::ffff:2")
    assert tenant_of(ANONYMOUS, "2001:db8::1") != tenant_of(ANONYMOUS, "2001:db8:0:1::1")
    assert tenant_of(ANONYMOUS, "fe80::1%eth0") == tenant_of(ANONYMOUS, "fe80::2%eth0")


def test_mapped_ipv4_address_is_the_same_tenant() -> None:
    assert tenant_of(ANONYMOUS, "::ffff:10.0.0.1") == tenant_of(ANONYMOUS, "10.0.0.1")
    assert tenant_of(ANONYMOUS, "::ffff:10.0.0.1") != tenant_of(ANONYMOUS, "::ffff:10.0.0.2")


def test_namespace_named_like_an_address_is_another_tenant() -> None:
    assert tenant_of(Caller("a", "10.0.0.1", frozenset()), "10.0.0.1") != tenant_of(ANONYMOUS, "10.0.0.1")


def test_unix_socket_has_no_address() -> None:
    assert tenant_of(ANONYMOUS, "") == "address "
