"""The private key that proves who we are to an authorization server, and by which algorithm it signs."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from goat_mcp.upstreams.oauth.login_contract import LoginRefused

_OF_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_MIN_RSA_BITS = 2048


class SigningKey:
    """A key in PEM. Raises `LoginRefused` for one that cannot be used; the text shows nothing of it."""

    def __init__(self, pem: str) -> None:
        self.pem = pem
        try:
            key = load_pem_private_key(pem.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise LoginRefused("oauth.private_key cannot be read: it is no private key in PEM, or damaged") from None
        self._algorithms: tuple[str, ...] = ()
        if isinstance(key, RSAPrivateKey) and key.key_size >= _MIN_RSA_BITS:
            self._algorithms = ("RS256", "PS256")
        elif isinstance(key, EllipticCurvePrivateKey) and key.curve.name in _OF_CURVES:
            self._algorithms = (_OF_CURVES[key.curve.name],)
        elif isinstance(key, Ed25519PrivateKey):
            self._algorithms = ("EdDSA",)
        if not self._algorithms:
            raise LoginRefused(
                f"oauth.private_key is of a kind that is not used: take RSA with {_MIN_RSA_BITS} bits or more, EC on "
                "P-256, P-384 or P-521, or Ed25519"
            )

    def algorithm_for(self, supported: Sequence[str] | None) -> str:
        """The first of its algorithms that a server with this metadata takes; None: it says nothing.

        Raises `LoginRefused` if there is none.
        """
        for algorithm in self._algorithms:
            if supported is None or algorithm in supported:
                return algorithm
        known, ours = ", ".join(supported or ())[:200], " or ".join(self._algorithms)
        raise LoginRefused(f"its authorization server takes {known or 'no signature'}; oauth.private_key signs {ours}")
