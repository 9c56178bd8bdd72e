#!/usr/bin/env python3
"""An independent reader of the protocol ZDC/1.

Written from the text of PROTOCOL.md, not from the Swift sources: another language, another library, the same bytes.
Needs Python 3.11 or newer and `cryptography` 48 to 50, nothing else.

    zdccheck.py [vectors] DIR     opens every vector file (*.json) of DIR and compares; exit code 1 if anything differs
    zdccheck.py write DIR         writes vectors made here (python-*.json) that the Swift side must open
    zdccheck.py tree FILE         opens a copy of a shared tree as each member whose keys it has, and prints its paths
    zdccheck.py mutate FILE [N [SEED]]   flips a bit in each of N copies of it (1,000), and must refuse all of them
"""

import hashlib
import hmac
import json
import os
import pathlib
import re
import struct
import sys
import unicodedata

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, MLKEM768X25519PrivateKey, MLKEM768X25519PublicKey, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

# --- errors --------------------------------------------------------------------------------------------------------


class ZDCError(Exception):
    """A rule of the protocol is broken; `code` is its name in PROTOCOL 3.15."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Mismatch(Exception):
    """A vector states one thing and the bytes say another."""


def require(condition, code):
    if not condition:
        raise ZDCError(code)


# --- limits (3.13) ---------------------------------------------------------------------------------------------------

NAME_BYTES = 1024
RECORD_BYTES = 64 << 10
PRIVATE_BYTES = 40 << 10
PROFILE_NAME_BYTES = 256
PROFILE_AVATAR_BYTES = 32 << 10
COMMIT_BYTES = 1 << 20
COMMIT_OPERATIONS = 1000
LINK_BYTES = 4 << 10
CLAIM_BYTES = 2 << 10
CHAIN_BYTES = 1 << 20
DELETED_DESCENDANTS = 10_000
ACL_ENTRIES = 1024
GRANT_BYTES = 4 << 10
EDIT_BYTES = 294_918
APP_TREE = re.compile(r"(?!\.)[0-9A-Za-z._-]{8,64}")
ACL_BYTES = 256 << 10
SPLIT_NODES = 1_000_000
OLD_GENERATIONS = 512
HISTORY_BYTES = 18_520
DEPTH_AT_CREATION, DEPTH_AFTER_MOVES = 128, 256
SECTION_BYTES = 16 << 20
CONTENT_BYTES = 32 << 30
KEYRING_BYTES = 64 << 10
ENVELOPE_BYTES = 1 << 20
MESSAGE_BYTES = 983_040
MESSAGE_HEADS = 16
VERSION_JUMP, FIRST_DATA_VERSION = 1 << 32, 1 << 63
LINK_HEADS = 256
LINK_ANSWER_BYTES = 32 << 10

# --- primitives (3.0) ------------------------------------------------------------------------------------------------

ZERO16 = bytes(16)
ZERO32 = bytes(32)
CHUNK = 16_384
SEALED_CHUNK = CHUNK + 16
PREFIX = 56
LEAF = 4 * SEALED_CHUNK


def u8(value):
    return struct.pack(">B", value)


def u16(value):
    return struct.pack(">H", value)


def u32(value):
    return struct.pack(">I", value)


def u64(value):
    return struct.pack(">Q", value)


def v16(value):
    return u16(len(value)) + value


def v32(value):
    return u32(len(value)) + value


def tagged(label):
    return b"zdc1/" + label.encode("ascii") + b"\0"


def H(label, data):
    return hashlib.sha256(tagged(label) + data).digest()


def D(key, label):
    return HKDFExpand(hashes.SHA256(), 32, b"zdc1/" + label.encode("ascii")).derive(key)


def commitment_equal(a, b):
    return hmac.compare_digest(a, b)


def chunked_keys(key, salt, context):
    info = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM" + b"\0" + salt + context
    okm = HKDFExpand(hashes.SHA512(), 76, info).derive(key)
    return AESGCM(okm[:32]), okm[32:44], okm[44:76]


def chunk_nonce(base, index):
    return (int.from_bytes(base, "big") ^ index).to_bytes(12, "big")


def seal(key, label, ctx, plaintext, salt=None):
    require(len(key) == 32, "invalidKey")
    salt = os.urandom(24) if salt is None else salt
    aead, base, commitment = chunked_keys(key, salt, tagged(label) + ctx)
    out = bytearray(salt + commitment)
    for index in range(len(plaintext) // CHUNK + 1):
        out += aead.encrypt(chunk_nonce(base, index), plaintext[index * CHUNK:(index + 1) * CHUNK], b"")
    return bytes(out)


def open_seal(key, label, ctx, sealed):
    require(len(key) == 32, "invalidKey")
    require(len(sealed) >= PREFIX, "contentTruncated")
    aead, base, commitment = chunked_keys(key, sealed[:24], tagged(label) + ctx)
    require(commitment_equal(commitment, sealed[24:PREFIX]), "commitmentMismatch")
    body = sealed[PREFIX:]
    require(len(body) % SEALED_CHUNK >= 16, "contentTruncated")
    return b"".join(
        open_chunk(aead, base, index, body[index * SEALED_CHUNK:(index + 1) * SEALED_CHUNK])
        for index in range(len(body) // SEALED_CHUNK + 1))


def open_chunk(aead, base, index, chunk):
    try:
        return aead.decrypt(chunk_nonce(base, index), chunk, b"")
    except InvalidTag:
        raise ZDCError("chunkAuthFailed") from None


def open_or(code, *arguments):
    """Opens a seal; every failure has the one name that its object gives it."""
    try:
        return open_seal(*arguments)
    except ZDCError:
        raise ZDCError(code) from None


HPKE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def xwing_key(seed):
    expanded = hashlib.shake_256(seed).digest(96)
    return MLKEM768X25519PrivateKey(
        mlkem.MLKEM768PrivateKey.from_seed_bytes(expanded[:64]),
        x25519.X25519PrivateKey.from_private_bytes(expanded[64:]))


def xwing_public(seed):
    expanded = hashlib.shake_256(seed).digest(96)
    kem = mlkem.MLKEM768PrivateKey.from_seed_bytes(expanded[:64]).public_key().public_bytes_raw()
    return kem + x25519.X25519PrivateKey.from_private_bytes(expanded[64:]).public_key().public_bytes_raw()


def xwing_public_key(raw):
    return MLKEM768X25519PublicKey(
        mlkem.MLKEM768PublicKey.from_public_bytes(raw[:1184]), x25519.X25519PublicKey.from_public_bytes(raw[1184:]))


def unwrap(seed, label, ctx, wrapped):
    return HPKE.decrypt(wrapped, xwing_key(seed), tagged(label) + ctx)


def sign_public(seed):
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def sign(seed, label, message):
    return Ed25519PrivateKey.from_private_bytes(seed).sign(tagged(label) + message)


SMALL_ORDER_Y = {
    0, 1, 2**255 - 20,
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
}


def is_weak(public):
    y = int.from_bytes(public, "little") & (2**255 - 1)
    return len(public) != 32 or y >= 2**255 - 19 or y in SMALL_ORDER_Y


def verifies(public, label, message, signature):
    if is_weak(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, tagged(label) + message)
        return True
    except (InvalidSignature, ValueError):
        return False


def merkle_root(leaves):
    """RFC 6962 over leaf hashes, by its recursive definition."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def leaf_hash(leaf):
    return hashlib.sha256(b"\0" + leaf).digest()


Z_BASE_32 = "ybndrfg8ejkmcpqxot1uwisza345h769"


def z_base_32(data):
    bits = len(data) * 8
    padded = int.from_bytes(data, "big") << (-bits % 5)
    count = (bits + 4) // 5
    return "".join(Z_BASE_32[padded >> (5 * (count - 1 - i)) & 31] for i in range(count))


def from_z_base_32(text, count):
    """Refuses a text that an encoder would not have written."""
    require(all(letter in Z_BASE_32 for letter in text), "nonCanonicalEncoding")
    require(len(text) == (count * 8 + 4) // 5, "nonCanonicalEncoding")
    bits = 0
    for letter in text:
        bits = bits << 5 | Z_BASE_32.index(letter)
    data = (bits >> (len(text) * 5 - count * 8)).to_bytes(count, "big")
    require(z_base_32(data) == text, "nonCanonicalEncoding")
    return data


class Reader:
    """Reads a canonical object from front to back."""

    def __init__(self, data):
        self.data = data
        self.offset = 0

    @property
    def remaining(self):
        return len(self.data) - self.offset

    def take(self, count):
        require(count <= self.remaining, "nonCanonicalEncoding")
        self.offset += count
        return self.data[self.offset - count:self.offset]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def u8(self):
        return self.number(1)

    def u16(self):
        return self.number(2)

    def u32(self):
        return self.number(4)

    def u64(self):
        return self.number(8)

    def flag(self):
        value = self.u8()
        require(value <= 1, "nonCanonicalEncoding")
        return value == 1

    def v16(self, limit=65_535):
        count = self.u16()
        require(count <= limit, "limitExceeded")
        return self.take(count)

    def v32(self, limit):
        count = self.u32()
        require(count <= limit, "limitExceeded")
        return self.take(count)

    def preamble(self, magic):
        require(self.take(4) == magic, "nonCanonicalEncoding")
        require(self.take(2) == b"\1\1", "unsupportedVersion")

    def finish(self):
        require(self.remaining == 0, "nonCanonicalEncoding")

    def padding(self, block):
        """The rest is zero, shorter than a block, and ends on one."""
        require(len(self.data) % block == 0, "nonCanonicalEncoding")
        rest = self.take(self.remaining)
        require(len(rest) < block and not any(rest), "nonCanonicalEncoding")


# --- access key (3.1) ------------------------------------------------------------------------------------------------

WORD_LIST = pathlib.Path(__file__).resolve().parent.parent / "Sources/ZDCCrypto/Resources/bip39-english.txt"
WORD_LIST_SHA256 = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"


def word_list():
    data = WORD_LIST.read_bytes()
    if hashlib.sha256(data).hexdigest() != WORD_LIST_SHA256:
        raise Mismatch("the word list is not the published one")
    return data.decode("ascii").split()


def access_key(words):
    index = {word: number for number, word in enumerate(word_list())}
    require(len(words) == 24, "wordCount")
    require(all(word in index for word in words), "unknownWord")
    bits = 0
    for word in words:
        bits = bits << 11 | index[word]
    data = bits.to_bytes(33, "big")
    require(hashlib.sha256(data[:32]).digest()[0] == data[32], "checksum")
    return data[:32]


def to_words(key):
    words = word_list()
    bits = int.from_bytes(key + hashlib.sha256(key).digest()[:1], "big")
    return [words[bits >> (11 * (23 - i)) & 2047] for i in range(24)]


# --- identity chain (3.2) --------------------------------------------------------------------------------------------


class Link:
    def __init__(self, data):
        require(len(data) <= LINK_BYTES, "limitExceeded")
        reader = Reader(data)
        reader.preamble(b"ZDIL")
        self.data = data
        self.kind = reader.u8()
        require(self.kind <= 4, "nonCanonicalEncoding")
        self.seq = reader.u32()
        self.prev = reader.take(32)
        self.stated_user = reader.take(32)
        self.time_ms = reader.u64()
        self.root_pub = reader.take(32)
        self.sign_gen, self.sign_pub = reader.u32(), reader.take(32)
        self.enc_gen, self.enc_pub = reader.u32(), reader.take(1216)
        self.compromise = reader.u8()
        require(self.compromise <= 3, "nonCanonicalEncoding")
        if reader.offset != 1372:
            raise Mismatch("the identity part of a link does not end at 1372")
        self.keyring_version, self.keyring_hash = reader.u64(), reader.take(32)
        self.claims = self.read_claims(Reader(reader.v16(CLAIM_BYTES)))
        self.signed = data[:reader.offset]
        self.sig_root, self.sig_new_root, self.sig_sign = reader.take(64), reader.take(64), reader.take(64)
        reader.finish()

    @staticmethod
    def read_claims(reader):
        claims = []
        while reader.remaining:
            kind = reader.u8()
            value = reader.v16()
            require(kind in (1, 2), "nonCanonicalEncoding")
            require(is_text(value) and value if kind == 1 else len(value) == 160, "nonCanonicalEncoding")
            claims.append((kind, value))
        return claims

    @property
    def hash(self):
        return H("link", self.data)


class Identity:
    """A user's verified chain."""

    def __init__(self, links):
        require(links, "accountStateMissing")
        genesis = links[0]
        ok = (genesis.kind == 0 and genesis.seq == 0 and genesis.prev == ZERO32 and genesis.stated_user == ZERO32
              and genesis.compromise == 0 and not any(genesis.sig_new_root))
        require(ok, "identityChainInvalid")
        self.check(genesis, genesis.root_pub)
        self.user = H("user-id", genesis.data[:1372])
        self.sign_keys, self.enc_keys, self.claims, self.keyring_hashes = {}, {}, [], []
        self.last, self.byte_count = None, 0
        self.advance(genesis)
        for link in links[1:]:
            self.extend(link)

    def extend(self, link):
        last = self.last
        require(self.byte_count + len(link.data) <= CHAIN_BYTES, "limitExceeded")
        require(last.kind != 4 and link.kind != 0, "identityChainInvalid")
        require(link.seq == last.seq + 1 and link.prev == last.hash, "identityChainInvalid")
        require(link.stated_user == self.user, "userIDMismatch")
        require(link.keyring_version >= last.keyring_version, "keyringRollback")
        root = link.root_pub == last.root_pub
        same_sign = (link.sign_gen, link.sign_pub) == (last.sign_gen, last.sign_pub)
        same_enc = (link.enc_gen, link.enc_pub) == (last.enc_gen, last.enc_pub)
        if link.kind == 1:
            allowed = root and not (same_sign and same_enc) and not link.claims
            next_sign = link.sign_gen == last.sign_gen + 1 and link.sign_pub != last.sign_pub
            next_enc = link.enc_gen == last.enc_gen + 1 and link.enc_pub != last.enc_pub
            allowed = allowed and (same_sign or next_sign) and (same_enc or next_enc)
        else:
            allowed = same_sign and same_enc and root == (link.kind != 2) and link.compromise == 0
            allowed = allowed and bool(link.claims) == (link.kind == 3)
        if link.kind == 3:
            same_keyring = (link.keyring_version, link.keyring_hash) == (last.keyring_version, last.keyring_hash)
            allowed = allowed and same_keyring
        require(allowed, "identityChainInvalid")
        self.check(link, last.root_pub)
        self.advance(link)

    @staticmethod
    def check(link, root_pub):
        require(not is_weak(link.root_pub) and not is_weak(link.sign_pub), "weakPublicKey")
        ok = verifies(root_pub, "link", link.signed, link.sig_root)
        ok = ok and verifies(link.sign_pub, "link", link.signed, link.sig_sign)
        if link.kind == 2:
            ok = ok and verifies(link.root_pub, "link", link.signed, link.sig_new_root)
        else:
            ok = ok and not any(link.sig_new_root)
        require(ok, "identityChainInvalid")

    def advance(self, link):
        self.last = link
        self.byte_count += len(link.data)
        self.sign_keys[link.sign_gen] = link.sign_pub
        self.enc_keys[link.enc_gen] = link.enc_pub
        self.claims += link.claims


class Directory:
    """Verified chains by user."""

    def __init__(self, identities):
        self.identities = {identity.user: identity for identity in identities}

    def sign_key(self, user, generation):
        identity = self.identities.get(user)
        return identity.sign_keys.get(generation) if identity else None


# --- comparing (3.2) -------------------------------------------------------------------------------------------------

IDENTITY_CODE = "zdcid:1:"


def safety_number(users):
    groups = []
    for user in sorted(users):
        digest = H("safety", user)
        groups += [f"{int.from_bytes(digest[5 * i:5 * i + 5], 'big') % 100_000:05}" for i in range(6)]
    return " ".join(groups)


class IdentityCode:
    def __init__(self, text):
        require(text.startswith(IDENTITY_CODE), "nonCanonicalEncoding")
        data = from_z_base_32(text[len(IDENTITY_CODE):], 68)
        self.user, self.seq, self.head = data[:32], int.from_bytes(data[32:36], "big"), data[36:]

    def check(self, links):
        """The chain of the code's user, as a server shows it, must have the link in that place."""
        require(Identity(links).user == self.user, "userIDMismatch")
        require(self.seq < len(links), "identityChainRollback")
        require(links[self.seq].hash == self.head, "identityChainInvalid")


# --- linking a device (3.4) ------------------------------------------------------------------------------------------

LINK_CODE = "zdclink:1:"


class LinkCode:
    def __init__(self, text):
        require(text.startswith(LINK_CODE), "nonCanonicalEncoding")
        data = from_z_base_32(text[len(LINK_CODE):], 48)
        self.link, self.offer_hash = data[:16], data[16:]

    def check(self, offer):
        require(len(offer) == 1248 and H("link-key", offer) == self.offer_hash, "keyCommitmentMismatch")

    def open(self, answer, seed):
        require(len(answer) <= LINK_ANSWER_BYTES, "limitExceeded")
        try:
            plaintext = unwrap(seed, "device-link", self.link + self.offer_hash, answer)
        except Exception as error:
            raise ZDCError("messageAuthFailed") from error
        reader = Reader(plaintext)
        reader.preamble(b"ZDLK")
        opened = {
            "accessKey": reader.take(32), "user": reader.take(32), "chainSeq": reader.u32(),
            "chainHash": reader.take(32), "heads": read_heads(reader, LINK_HEADS)}
        reader.finish()
        return opened

    def digits(self, offer, nonce, user):
        first = H("link-sas", self.link + offer + nonce + user)[:8]
        return f"{int.from_bytes(first, 'big') % 10**6:06}"


def check_nonce(offer, nonce):
    require(H("link-nonce", nonce) == offer[1216:], "keyCommitmentMismatch")


# --- keyring (3.1) ---------------------------------------------------------------------------------------------------


def parse_keyring(plaintext):
    require(len(plaintext) <= KEYRING_BYTES, "limitExceeded")
    reader = Reader(plaintext)
    reader.preamble(b"ZDKR")
    version, user = reader.u64(), reader.take(32)
    entries = []
    for _ in range(reader.u16()):
        kind, generation, status = reader.u8(), reader.u32(), reader.u8()
        require(kind in (1, 2) and status in (1, 2, 3) and generation > 0, "nonCanonicalEncoding")
        entries.append({
            "kind": kind, "gen": generation, "status": status, "createdMs": reader.u64(),
            "seed": reader.take(32).hex()})
    keys = [(entry["kind"], entry["gen"]) for entry in entries]
    require(keys == sorted(set(keys)), "nonCanonicalEncoding")
    require([entry["kind"] for entry in entries if entry["status"] == 1] == [1, 2], "nonCanonicalEncoding")
    reader.padding(512)
    return version, user, entries


def open_keyring(blob, key, identity, pinned):
    newest = identity.last
    require(newest.keyring_version >= pinned, "keyringRollback")
    require(len(blob) <= KEYRING_BYTES, "limitExceeded")

    def attempt(version):
        try:
            return open_seal(key, "keyring", identity.user + u64(version), blob)
        except ZDCError:
            return None

    plaintext = attempt(newest.keyring_version)
    if plaintext is None:
        older = any(attempt(version) is not None for version in range(newest.keyring_version))
        raise ZDCError("keyringRollback" if older else "keyringAuthFailed")
    try:
        version, user, entries = parse_keyring(plaintext)
    except ZDCError:
        raise ZDCError("keyringMismatch") from None
    require(H("keyring-blob", blob) == newest.keyring_hash, "keyringMismatch")
    require((version, user) == (newest.keyring_version, identity.user), "keyringMismatch")
    for entry in entries:
        seed = bytes.fromhex(entry["seed"])
        if entry["kind"] == 1:
            derived, stated, current = sign_public(seed), identity.sign_keys, newest.sign_gen
        else:
            derived, stated, current = xwing_public(seed), identity.enc_keys, newest.enc_gen
        require(stated.get(entry["gen"]) == derived, "keyringMismatch")
        require((entry["gen"] == current) == (entry["status"] == 1), "keyringMismatch")
    return version, entries


# --- node keys and names (3.5) ---------------------------------------------------------------------------------------


def tree_id(owner, trunk, app_tree):
    return H("tree", owner + u8(trunk) + v16(app_tree.encode()))


def content_capability(node_key):
    return D(node_key, "content-capability")


def commitments(node_key):
    return D(node_key, "nk-commit"), D(content_capability(node_key), "ck-commit")


def fold(name):
    require(name != "", "empty")
    require("\0" not in name, "containsNull")
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", name)).encode("utf-8")
    require(len(folded) <= NAME_BYTES, "tooLong")
    return folded


def name_tag(parent_key, folded):
    return hmac.new(D(parent_key, "names"), b"zdc1/name\0" + folded, hashlib.sha256).digest()[:16]


def open_history(wrap, tree, node, key, generation):
    if not wrap:
        return []
    plaintext = open_or("recordAuthFailed", D(key, "history"), "old-keys", tree + node + u32(generation), wrap)
    require(len(plaintext) // 36 <= OLD_GENERATIONS, "limitExceeded")
    require(plaintext and len(plaintext) % 36 == 0, "nonCanonicalEncoding")
    reader = Reader(plaintext)
    entries = []
    while reader.remaining:
        entries.append((reader.u32(), reader.take(32)))
    generations = [0] + [entry[0] for entry in entries] + [generation]
    require(all(a < b for a, b in zip(generations, generations[1:])), "nonCanonicalEncoding")
    return entries


# --- records (3.6) ---------------------------------------------------------------------------------------------------


class Record:
    def __init__(self, data):
        require(len(data) <= RECORD_BYTES, "limitExceeded")
        self.data = data
        reader = Reader(data)
        reader.preamble(b"ZDNR")
        self.flags = reader.u16()
        require(self.flags & ~31 == 0, "unsupportedVersion")
        require(not self.flags & 16 or self.flags & 4, "nonCanonicalEncoding")
        self.tree, self.node, self.parent = reader.take(32), reader.take(16), reader.take(16)
        self.version, self.prev = reader.u64(), reader.take(32)
        self.key_gen, self.parent_key_gen = reader.u32(), reader.u32()
        self.parent_wrap, self.history_wrap = reader.v16(), reader.v16(HISTORY_BYTES)
        self.name_tag = reader.take(16)
        self.commitments = (reader.take(32), reader.take(32)) if self.flags & 1 else None
        self.content = self.read_content(reader) if self.flags & 4 else None
        self.data_by = (reader.take(32), reader.u64()) if self.flags & 16 else None
        self.burn_ms = reader.u64() if self.flags & 8 else None
        self.private = reader.v32(PRIVATE_BYTES)
        self.writer, self.writer_gen, self.time_ms = reader.take(32), reader.u32(), reader.u64()
        reader.finish()
        self.hash = H("record", data)

    @staticmethod
    def read_content(reader):
        content = {
            "dataVersion": reader.u64(), "blobID": reader.take(16), "cipherLen": reader.u64(),
            "contentRoot": reader.take(32)}
        require(content["cipherLen"] <= CONTENT_BYTES, "limitExceeded")
        require(content["cipherLen"] >= sealed_length(64), "nonCanonicalEncoding")
        return content

    def open(self, node_key, parent_key=None):
        """The private part, after the checks of 3.6 that need keys."""
        context = self.tree + self.node + self.parent + u64(self.version) + u32(self.key_gen)
        record_key = D(content_capability(node_key), "record")
        plaintext = open_or("recordAuthFailed", record_key, "record", context, self.private)
        private = parse_private(plaintext, bool(self.flags & 4))
        if self.parent != ZERO16:
            require_name(private["name"])
        if parent_key is not None:
            require(name_tag(parent_key, private["name"]) == self.name_tag, "nameTagMismatch")
        pointer = bool(self.flags & 2)
        require(pointer == (private["pointer"] is not None) and not (pointer and self.content), "recordBindingMismatch")
        is_in_place = private.get("message", self.node) == self.node or "movedFrom" in private
        require(is_in_place, "recordBindingMismatch")
        if "profile" in private:
            require("message" in private and not pointer and not self.content, "recordBindingMismatch")
        if self.content:
            inner = private["content"]
            check_sizes(inner["sizes"], self.content["cipherLen"])
            require((inner["sizes"][1] == 0) == (inner["tag"] == ZERO16), "contentHeaderInvalid")
        open_history(self.history_wrap, self.tree, self.node, node_key, self.key_gen)
        private["plaintext"] = plaintext
        return private


def is_text(data):
    try:
        data.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


def require_name(name):
    require(name and 0 not in name and is_text(name), "nonCanonicalEncoding")


def read_pointer(reader):
    return {
        "owner": reader.take(32), "treeID": reader.take(32), "zoneRoot": reader.take(16), "nodeID": reader.take(16),
        "genesis": reader.take(32), "seq": reader.u64(), "head": reader.take(32)}


def parse_cloud_path(text):
    """The place of a branch, as an invitation names it (3.7)."""
    reader = Reader(from_z_base_32(text, 169))
    require(reader.u8() == 1, "nonCanonicalEncoding")
    path = read_pointer(reader)
    reader.finish()
    return path


def parse_private(plaintext, has_content):
    require(len(plaintext) <= PRIVATE_BYTES, "limitExceeded")
    reader = Reader(plaintext)
    require(len(plaintext) % 32 == 0, "nonCanonicalEncoding")
    require(reader.u8() == 1, "unsupportedVersion")
    private = {"name": reader.v16(NAME_BYTES), "createdMs": reader.u64(), "pointer": None, "content": None,
               "unknownExtras": []}
    if reader.flag():
        private["pointer"] = read_pointer(reader)
    if has_content:
        key, data, metadata, thumbnail = reader.take(32), reader.u64(), reader.u32(), reader.u32()
        private["content"] = {"key": key, "sizes": (metadata, thumbnail, data), "tag": reader.take(16)}
    last, recipients = 0, []
    for _ in range(reader.u16()):
        kind = reader.u8()
        require(kind > last, "nonCanonicalEncoding")
        last = kind
        value = reader.v16()
        if kind == 1:
            require(value and len(value) % 32 == 0, "nonCanonicalEncoding")
            recipients = [value[start:start + 32] for start in range(0, len(value), 32)]
            private["recipients"] = recipients
        if kind == 2:
            private["served"] = read_served(value, recipients)
        require(kind != 7 or value == b"\x01", "nonCanonicalEncoding")
        require(len(value) == {3: 48, 4: 8, 5: 68}.get(kind, len(value)), "nonCanonicalEncoding")
        if kind == 3:
            private["movedFrom"] = value
        if kind == 4:
            private["device"] = value
        if kind == 5:
            private["message"] = message_node(value[:32], value[52:])
        if kind == 6:
            check_profile(value)
            private["profile"] = value
        if kind > 7:
            private["unknownExtras"].append({"type": kind, "value": value.hex()})
    reader.padding(32)
    return private


def read_served(value, recipients):
    """The served recipients, from one bit for each, in their order, the first in the lowest bit."""
    bits = int.from_bytes(value, "little")
    require(len(value) == (len(recipients) + 7) // 8 and 0 < bits < 1 << len(recipients), "nonCanonicalEncoding")
    served = {user for index, user in enumerate(recipients) if bits >> index & 1}
    require(bits == sum(1 << index for index, user in enumerate(recipients) if user in served), "nonCanonicalEncoding")
    return [user for user in recipients if user in served]


def open_record(record, parent_key, parent_gen):
    require(record.parent_key_gen == parent_gen, "staleKeyGeneration")
    context = record.tree + record.node + u32(record.key_gen) + u32(parent_gen)
    node_key = open_or("recordAuthFailed", D(parent_key, "children"), "child-key", context, record.parent_wrap)
    require(len(node_key) == 32, "recordAuthFailed")
    if record.commitments:
        require(record.commitments == commitments(node_key), "keyCommitmentMismatch")
    return node_key, record.open(node_key, parent_key)


def open_root(record, zone_key, stated):
    require(record.commitments == stated and commitments(zone_key) == stated, "keyCommitmentMismatch")
    require(not record.history_wrap, "recordBindingMismatch")
    private = record.open(zone_key)
    if record.parent == ZERO16:
        bare = not private["name"] and record.name_tag == ZERO16 and not record.flags & 2
        bare = bare and not record.parent_wrap
        require(bare and record.parent_key_gen == 0, "recordBindingMismatch")
    return zone_key, private


def check_put(record, put, zone, previous):
    """The checks of 3.6 that need no key; `previous` is the record that the log had for the node."""
    _, node, parent, record_hash, key_gen, parent_key_gen = put
    require((record.tree, record.node) == (zone[0], node), "recordBindingMismatch")
    require(record.hash == record_hash, "recordHashMismatch")
    place = (record.parent, record.key_gen, record.parent_key_gen)
    require(place == (parent, key_gen, parent_key_gen), "recordBindingMismatch")
    require(record.prev == (previous.hash if previous else ZERO32), "recordRollback")
    require(bool(record.flags & 1) == (node == zone[1]), "recordBindingMismatch")
    if node == zone[1]:
        bare = not record.parent_wrap and not record.history_wrap and record.name_tag == ZERO16
        require(bare and not record.flags & 2, "recordBindingMismatch")
        require(zone[1] != zone[0][:16] or not record.content, "recordBindingMismatch")
    if previous:
        check_versions(record, previous)
    else:
        require(record.version == 1, "recordRollback")
        require(not record.content or record.content["dataVersion"] <= FIRST_DATA_VERSION, "limitExceeded")


def check_versions(record, previous):
    new, old = record.content, previous.content
    require(record.version > previous.version, "recordRollback")
    require(record.version - previous.version <= VERSION_JUMP, "limitExceeded")
    if new:
        require(new["dataVersion"] - (old["dataVersion"] if old else 0) <= VERSION_JUMP, "limitExceeded")
    if old and new != old:
        newer = new and new["dataVersion"] > old["dataVersion"] and new["blobID"] != old["blobID"]
        require(newer, "recordRollback")


# --- content (3.8) ---------------------------------------------------------------------------------------------------


def sealed_length(count):
    return PREFIX + count + (count // CHUNK + 1) * 16


def leaf_ranges(length):
    borders = [0] + list(range(PREFIX + LEAF, length, LEAF)) + [length]
    return list(zip(borders, borders[1:]))


def padme(length):
    exponent = length.bit_length() - 1
    dropped = exponent - exponent.bit_length() if exponent else 0
    mask = (1 << max(dropped, 0)) - 1
    return (length + mask) & ~mask


def padded_length(length, policy):
    if policy == "none":
        return length
    if policy == "padme":
        return padme(length)
    size = int(policy.split(":")[1])
    return -(-length // size) * size


def check_sizes(sizes, cipher_length):
    """Padding, from the sizes and the length of the ciphertext."""
    metadata, thumbnail, data = sizes
    require(metadata <= SECTION_BYTES and thumbnail <= SECTION_BYTES and data <= CONTENT_BYTES, "limitExceeded")
    require(cipher_length <= CONTENT_BYTES, "limitExceeded")
    full, rest = divmod(cipher_length - PREFIX, SEALED_CHUNK)
    require(cipher_length >= PREFIX and rest >= 16, "contentHeaderInvalid")
    padding = full * CHUNK + rest - 16 - 64 - metadata - thumbnail - data
    require(padding >= 0, "contentHeaderInvalid")
    return padding


def content_header(sizes, padding, tag):
    metadata, thumbnail, data = sizes
    head = b"ZDCFILE1" + u8(1) + u8(0) + u16(0) + u32(metadata) + u32(thumbnail) + u64(data) + u64(padding)
    return head + tag + bytes(12)


def thumbnail_tag(thumbnail):
    return hashlib.sha256(thumbnail).digest()[:16] if thumbnail else ZERO16


def open_content(content, leaves, sizes, tag, key):
    """Opens a ciphertext as a reader does: leaf against root, commitment, tags, header."""
    data, blob_id, length, root = content["bytes"], content["blobID"], content["cipherLen"], content["contentRoot"]
    padding = check_sizes(sizes, length)
    ranges = leaf_ranges(length)
    require(len(leaves) == len(ranges) and merkle_root(leaves) == root, "contentHashMismatch")
    aead, plaintext = None, b""
    for index, (start, end) in enumerate(ranges):
        require(len(data) >= end, "contentTruncated")
        leaf = data[start:end]
        require(leaf_hash(leaf) == leaves[index], "contentHashMismatch")
        if index == 0:
            aead, base, commitment = chunked_keys(key, leaf[:24], tagged("content") + blob_id)
            require(commitment_equal(commitment, leaf[24:PREFIX]), "commitmentMismatch")
            leaf = leaf[PREFIX:]
        for number, offset in enumerate(range(0, len(leaf), SEALED_CHUNK)):
            plaintext += open_chunk(aead, base, 4 * index + number, leaf[offset:offset + SEALED_CHUNK])
        if index == 0:
            require(plaintext[:64] == content_header(sizes, padding, tag), "contentHeaderInvalid")
    require(len(data) == length, "contentTrailingData")
    require(not any(plaintext[len(plaintext) - padding:]) if padding else True, "contentHeaderInvalid")
    metadata, thumbnail, _ = sizes
    require(thumbnail_tag(plaintext[64 + metadata:64 + metadata + thumbnail]) == tag, "contentHeaderInvalid")
    return plaintext[64:len(plaintext) - padding]


# --- access list, grant (3.9) ----------------------------------------------------------------------------------------

READ, WRITE, SHARE, RECORDS_ONLY, LEAFS_ONLY, USER_ONLY, WRITE_ONCE, BURN = (1 << bit for bit in range(8))


def require_perms(perms):
    require(perms < 256, "unsupportedVersion")
    narrowing = perms & ~(READ | WRITE | SHARE)
    require(perms - narrowing in (1, 3, 7), "nonCanonicalEncoding")
    require(not narrowing or perms - narrowing == READ | WRITE, "nonCanonicalEncoding")
    require(not perms & BURN or perms & WRITE_ONCE, "nonCanonicalEncoding")


class ACL:
    def __init__(self, data):
        require(len(data) <= ACL_BYTES, "limitExceeded")
        self.data = data
        reader = Reader(data)
        reader.preamble(b"ZDAC")
        self.tree, self.root, self.owner, self.trunk = reader.take(32), reader.take(16), reader.take(32), reader.u8()
        require(1 <= self.trunk <= 4, "nonCanonicalEncoding")
        try:
            self.app_tree = reader.v16().decode("ascii")
        except UnicodeDecodeError:
            raise ZDCError("nonCanonicalEncoding") from None
        require(APP_TREE.fullmatch(self.app_tree), "nonCanonicalEncoding")
        self.version, self.prev = reader.u32(), reader.take(32)
        linked, protocol = reader.flag(), reader.u8()
        self.key_gen, self.commitments = reader.u32(), (reader.take(32), reader.take(32))
        self.history = reader.v16(HISTORY_BYTES)
        require(protocol == 1 and not linked, "unsupportedVersion")
        require(self.key_gen > 1 or not self.history, "nonCanonicalEncoding")
        count = reader.u16()
        require(count <= ACL_ENTRIES, "limitExceeded")
        self.entries = {}
        for _ in range(count):
            user, entry = read_entry(reader)
            require(user > max(self.entries, default=b""), "nonCanonicalEncoding")
            self.entries[user] = entry
        self.writer, self.writer_gen, self.time_ms = reader.take(32), reader.u32(), reader.u64()
        self.signed, self.signature = data[:reader.offset], reader.take(64)
        reader.finish()
        self.hash = H("acl", data)

    def verify(self, old, directory):
        """The rules of 3.9, against the list before; None for a zone's first."""
        require(tree_id(self.owner, self.trunk, self.app_tree) == self.tree, "recordBindingMismatch")
        entry = self.entries.get(self.owner)
        require(entry is not None and entry[0] == 7, "aclOwnerImmutable")
        if old is None:
            require(self.version == 1 and self.prev == ZERO32, "aclRollback")
            require(self.key_gen == 1 or self.root != self.tree[:16], "staleKeyGeneration")
            require(self.writer == self.owner, "aclNotAuthorized")
        else:
            self.verify_step(old)
            self.verify_rights(old)
        public = directory.sign_key(self.writer, self.writer_gen)
        require(public is not None, "writerUnknown")
        require(verifies(public, "acl", self.signed, self.signature), "aclSignatureInvalid")

    def verify_step(self, old):
        require(self.version == old.version + 1 and self.prev == old.hash, "aclRollback")
        names = ("tree", "root", "owner", "trunk", "app_tree")
        require(all(getattr(self, name) == getattr(old, name) for name in names), "recordBindingMismatch")
        same = (self.key_gen, self.commitments, self.history) == (old.key_gen, old.commitments, old.history)
        require(same or self.key_gen == old.key_gen + 1, "staleKeyGeneration")

    def verify_rights(self, old):
        new_owner, old_owner = self.entries[self.owner], old.entries[self.owner]
        require(new_owner[0] == old_owner[0], "aclOwnerImmutable")
        if self.writer == self.owner:
            return
        rotated = self.key_gen != old.key_gen
        require(new_owner == old_owner or rotated and new_owner[1] >= old_owner[1], "aclOwnerImmutable")
        require(self.writer in old.entries, "aclNotAuthorized")
        rest = {user: entry for user, entry in old.entries.items() if user != self.writer}
        if self.entries == rest and not rotated:
            return
        given = old.entries[self.writer][0]
        require(given & 4, "aclNotAuthorized")
        for user, entry in self.entries.items():
            before = old.entries.get(user)
            wider = entry[0] & (READ | WRITE | SHARE) & ~given
            require(before and before[0] == entry[0] or not wider, "aclNotAuthorized")


def read_entry(reader):
    user, perms, enc_gen, kind, wrap_hash = reader.take(32), reader.u16(), reader.u32(), reader.u8(), reader.take(32)
    require(kind == 1, "unsupportedVersion")
    require_perms(perms)
    require(enc_gen >= 1, "nonCanonicalEncoding")
    return user, (perms, enc_gen, wrap_hash)


def apply_edit(data, old):
    """The list after an edit (3.13)."""
    require(len(data) <= EDIT_BYTES, "limitExceeded")
    reader = Reader(data)
    head = reader.v32(ACL_BYTES)
    removed = [reader.take(32) for _ in range(limited(reader.u16()))]
    changed = [read_entry(reader) for _ in range(limited(reader.u16()))]
    tail = reader.take(108)
    reader.finish()
    for users in (removed, [user for user, _ in changed]):
        require(users == sorted(set(users)), "nonCanonicalEncoding")
    entries = dict(old.entries)
    for user in removed:
        require(user in entries, "nonCanonicalEncoding")
        del entries[user]
    for user, entry in changed:
        require(user not in removed and entries.get(user) != entry, "nonCanonicalEncoding")
        entries[user] = entry
    require(len(entries) <= ACL_ENTRIES, "limitExceeded")
    body = u16(len(entries))
    for user, (perms, enc_gen, wrap_hash) in sorted(entries.items()):
        body += user + u16(perms) + u32(enc_gen) + u8(1) + wrap_hash
    new = ACL(head + body + tail)
    require(new.prev == old.hash, "aclRollback")
    return new


def limited(count):
    require(count <= ACL_ENTRIES, "limitExceeded")
    return count


class Grant:
    def __init__(self, data):
        require(len(data) <= GRANT_BYTES, "limitExceeded")
        reader = Reader(data)
        reader.preamble(b"ZDGR")
        self.tree, self.root, self.key_gen, self.user = reader.take(32), reader.take(16), reader.u32(), reader.take(32)
        self.wrap = reader.v16()
        reader.finish()


def grant_context(acl, user, enc_gen):
    nk, ck = acl.commitments
    return acl.tree + acl.root + u32(acl.key_gen) + user + u32(enc_gen) + u8(1) + nk + ck


def open_grant(grant, acl, user, seed):
    entry = acl.entries.get(user)
    require(entry is not None, "grantMissing")
    _, enc_gen, wrap_hash = entry
    named = (grant.tree, grant.root, grant.key_gen, grant.user) == (acl.tree, acl.root, acl.key_gen, user)
    require(named and H("grant", grant.wrap) == wrap_hash, "grantHashMismatch")
    try:
        key = unwrap(seed, "grant", grant_context(acl, user, enc_gen), grant.wrap)
    except Exception:  # the library has several types for a failed opening; they mean the same
        raise ZDCError("keyCommitmentMismatch") from None
    require(len(key) == 32 and commitments(key) == acl.commitments, "keyCommitmentMismatch")
    return key


# --- zone log (3.7) --------------------------------------------------------------------------------------------------


class Commit:
    def __init__(self, data):
        require(len(data) <= COMMIT_BYTES, "limitExceeded")
        reader = Reader(data)
        reader.preamble(b"ZDZC")
        self.tree, self.root = reader.take(32), reader.take(16)
        self.seq, self.prev, self.acl_hash = reader.u64(), reader.take(32), reader.take(32)
        self.writer, self.writer_gen, self.time_ms = reader.take(32), reader.u32(), reader.u64()
        kt_size, kt_root = reader.u64(), reader.take(32)
        require((kt_size == 0) == (kt_root == ZERO32), "nonCanonicalEncoding")
        require(kt_size == 0, "unsupportedVersion")
        count = reader.u16()
        require(count >= 1, "nonCanonicalEncoding")
        require(count <= COMMIT_OPERATIONS, "limitExceeded")
        self.operations = [self.read_operation(reader) for _ in range(count)]
        self.signed, self.signature = data[:reader.offset], reader.take(64)
        reader.finish()
        self.hash = H("commit", data)

    @staticmethod
    def read_operation(reader):
        kind = reader.u8()
        if kind == 1:
            return kind, reader.take(16), reader.take(16), reader.take(32), reader.u32(), reader.u32()
        if kind == 2:
            return kind, reader.take(16), reader.take(32), reader.u64()
        if kind == 3:
            return kind, reader.u32(), reader.take(32)
        if kind == 4:
            return kind, reader.take(16), reader.take(32), reader.u64()
        if kind == 8:
            return kind, reader.take(32), reader.u32()
        require(kind == 10, "nonCanonicalEncoding")
        return kind, reader.take(32), reader.take(32), reader.u64()

    @property
    def genesis_state(self):
        """(parent's head, root, count) of a zone that was split off, else None."""
        first = self.operations[0]
        return first[1:] if first[0] == 10 else None

    def check_places(self):
        """A state begins a genesis, and one split stands before all puts, with no delete beside it."""
        kinds = [operation[0] for operation in self.operations]
        require(10 not in kinds[1:] and (kinds[0] != 10 or self.seq == 0), "nonCanonicalEncoding")
        if 4 in kinds:
            before = kinds[:len(kinds) - 1 - kinds[::-1].index(4)]
            require(2 not in kinds and not {1, 4} & set(before), "nonCanonicalEncoding")


# --- state lists (3.7) -----------------------------------------------------------------------------------------------


def parse_state(data):
    require(len(data) // 72 <= SPLIT_NODES, "limitExceeded")
    require(data and len(data) % 72 == 0, "nonCanonicalEncoding")
    reader, leaves, last = Reader(data), {}, ZERO16
    while reader.remaining:
        node, parent, record = reader.take(16), reader.take(16), reader.take(32)
        require(node > last, "nonCanonicalEncoding")
        last = node
        leaves[node] = (parent, record, 0, reader.u32(), reader.u32())
    return leaves


def state_bytes(leaves):
    return [
        node + parent + record + u32(gen) + u32(parent_gen)
        for node, (parent, record, _, gen, parent_gen) in sorted(leaves.items())]


def state_list_root(leaves):
    return merkle_root([leaf_hash(entry) for entry in state_bytes(leaves)])


def require_tree(leaves, top):
    """Each node reaches the root within 256 steps, over generations that exist."""
    require(top in leaves and leaves[top][0] == ZERO16 and leaves[top][4] == 0, "splitMismatch")
    for node, (parent, _, _, gen, parent_gen) in leaves.items():
        require(gen >= 1, "splitMismatch")
        if node != top:
            require(parent in leaves and parent_gen <= leaves[parent][3], "splitMismatch")
        steps = 0
        while node != top:
            node, steps = leaves.get(node, (ZERO16,))[0], steps + 1
            require(node in leaves and steps <= DEPTH_AFTER_MOVES, "splitMismatch")


class Zone:
    """A zone's replayed log: what lives, and the newest head."""

    def __init__(self, directory):
        self.directory, self.seq, self.head, self.acl = directory, None, None, None
        self.leaves, self.retired, self.writers, self.closed = {}, {}, {}, False
        self.split = None

    def apply(self, commit, acl, state=None):
        if self.head is None:
            parent_head = commit.genesis_state[0] if commit.genesis_state else ZERO32
            genesis = H("zone-genesis", commit.tree + commit.root + parent_head)
            require(commit.seq == 0 and commit.prev == genesis, "commitChainBroken")
        else:
            require((commit.tree, commit.root) == (self.acl.tree, self.acl.root), "recordBindingMismatch")
            follows = commit.seq == self.seq + 1 and commit.prev == self.head
            require(follows and not self.closed, "commitChainBroken")
        commit.check_places()
        current = self.next_acl(commit, acl)
        public = self.directory.sign_key(commit.writer, commit.writer_gen)
        require(commit.writer_gen >= self.retired.get(commit.writer, 0), "writerNotAuthorized")
        require(public is not None, "writerUnknown")
        require(verifies(public, "commit", commit.signed, commit.signature), "signatureInvalid")
        before = self.acl or current
        self.deleted, self.root_gen, self.split, self.mount_parent, self.mounted = 0, None, None, None, False
        self.writers[commit.seq] = commit.writer
        touched = set()
        for operation in commit.operations:
            self.authorize(operation, commit, before, current)
            self.operate(operation, commit, touched, state)
        require(self.split is None or self.mounted, "splitMismatch")
        if self.acl is None or current.key_gen != self.acl.key_gen:
            require(self.root_gen is not None, "keyCommitmentMismatch")
        require(self.root_gen in (None, current.key_gen), "keyCommitmentMismatch")
        self.seq, self.head, self.acl = commit.seq, commit.hash, current

    def next_acl(self, commit, acl):
        named = [operation for operation in commit.operations if operation[0] == 3]
        if not named:
            require(acl is None, "nonCanonicalEncoding")
            require(self.acl is not None and commit.acl_hash == self.acl.hash, "aclRollback")
            return self.acl
        _, version, acl_hash = named[0]
        require(len(named) == 1 and acl is not None and acl.hash == acl_hash, "nonCanonicalEncoding")
        same = acl.hash == commit.acl_hash and acl.version == version
        same = same and (acl.writer, acl.writer_gen) == (commit.writer, commit.writer_gen)
        require(same and (acl.tree, acl.root) == (commit.tree, commit.root), "aclSignatureInvalid")
        acl.verify(self.acl, self.directory)
        return acl

    def authorize(self, operation, commit, before, after):
        """Rights are those of the list before the commit; a genesis has only its own."""
        kind, writer = operation[0], commit.writer
        if kind == 8:
            allowed = writer == before.owner or writer == operation[1]
            require(allowed and operation[1] in before.entries, "writerNotAuthorized")
        if writer == before.owner:
            return
        perms = before.entries[writer][0] if writer in before.entries else 0
        if kind == 1 and operation[1] == commit.root == commit.tree[:16]:
            require(perms & 4 and after.key_gen != before.key_gen, "writerNotAuthorized")
        if kind in (1, 2):
            require(perms & WRITE, "writerNotAuthorized")
        if kind == 1:
            require(self.may_put(operation, perms, commit), "writerNotAuthorized")
        if kind == 2:
            require(self.may_delete(operation, perms, commit), "writerNotAuthorized")
        if kind == 4:
            raise ZDCError("splitNeedsOwner")

    def may_put(self, operation, perms, commit):
        """Rights that narrow `w` (3.9)."""
        node, parent = operation[1:3]
        old = self.leaves.get(node)
        if perms & WRITE_ONCE and old is not None:
            return False
        if perms & LEAFS_ONLY and (parent != commit.root or old is not None and old[0] != commit.root):
            return False
        return not perms & USER_ONLY or node == own_child(commit) and parent == commit.root

    def may_delete(self, operation, perms, commit):
        _, node, _, count = operation
        if node == commit.root:
            return False
        leaf = self.leaves.get(node)
        if not perms & (WRITE_ONCE | LEAFS_ONLY | USER_ONLY) or leaf is None:
            return True
        if count:
            return False
        if perms & WRITE_ONCE and not (perms & BURN and self.writers[leaf[2]] == commit.writer):
            return False
        if perms & LEAFS_ONLY and leaf[0] != commit.root:
            return False
        return not perms & USER_ONLY or node == own_child(commit)

    def operate(self, operation, commit, touched, state):
        kind = operation[0]
        if kind == 1:
            self.put(operation, commit, touched)
        elif kind == 2:
            self.delete(operation, commit, touched)
        elif kind == 8:
            _, user, generation = operation
            require(generation > max(1, self.retired.get(user, 0)), "writerNotAuthorized")
            require(self.directory.sign_key(user, generation) is not None, "writerUnknown")
            self.retired[user] = generation
        elif kind == 4:
            self.split_off(operation, commit, touched)
        elif kind == 10:
            self.begin(operation, commit, state)

    def begin(self, operation, commit, state):
        _, _, root, count = operation
        require(commit.root != commit.tree[:16], "splitMismatch")
        require(state is not None, "objectMissing")
        leaves = parse_state(state)
        require(len(leaves) == count and state_list_root(leaves) == root, "splitMismatch")
        require_tree(leaves, commit.root)
        self.leaves = leaves

    def split_off(self, operation, commit, touched):
        _, node, genesis, count = operation
        require(node != commit.root, "splitMismatch")
        require(count <= SPLIT_NODES, "limitExceeded")
        require(node in self.leaves, "objectMissing")
        branch = [node] + self.below(node)
        require(len(branch) == count, "splitMismatch")
        touched.update(branch)
        self.mount_parent = self.leaves[node][0]
        leaves = {}
        for other in branch:
            parent, record, _, gen, parent_gen = self.leaves[other]
            leaves[other] = (parent, record, 0, gen, parent_gen) if other != node else (ZERO16, record, 0, gen, 0)
        for gone in branch:
            del self.leaves[gone]
        self.split = (node, genesis, commit.prev, leaves)

    def check_genesis(self, commit):
        """The genesis of the zone that the newest commit splits off, against this log."""
        node, genesis, parent_head, leaves = self.split
        named = commit.hash == genesis and (commit.tree, commit.root) == (self.acl.tree, node)
        require(named and commit.genesis_state == (parent_head, state_list_root(leaves), len(leaves)), "splitMismatch")

    def delete(self, operation, commit, touched):
        _, node, record, count = operation
        require(node not in touched, "nonCanonicalEncoding")
        touched.add(node)
        if node == commit.root:
            self.close(record, count, commit)
            return
        self.deleted += count
        require(self.deleted <= DELETED_DESCENDANTS, "limitExceeded")
        require(node in self.leaves, "objectMissing")
        require(self.leaves[node][1] == record, "recordHashMismatch")
        below = self.below(node)
        require(len(below) == count, "moveMismatch")
        for gone in below + [node]:
            del self.leaves[gone]

    def close(self, record, count, commit):
        require(commit.root != commit.tree[:16], "writerNotAuthorized")
        require(len(commit.operations) == 1 and count == 0, "nonCanonicalEncoding")
        require(commit.root in self.leaves, "objectMissing")
        require(self.leaves[commit.root][1] == record, "recordHashMismatch")
        self.leaves, self.closed = {}, True

    def put(self, operation, commit, touched):
        _, node, parent, record, key_gen, parent_key_gen = operation
        require(node != ZERO16, "nonCanonicalEncoding")
        require(node not in touched, "nonCanonicalEncoding")
        touched.add(node)
        old = self.leaves.get(node)
        self.check_generation(node, key_gen, old, commit)
        if node == commit.root:
            require(old is not None or self.head is None, "commitChainBroken")
            require(parent == ZERO16 and parent_key_gen == 0, "treeCycle")
            self.root_gen = key_gen
        else:
            self.check_place(node, parent, parent_key_gen, old, commit)
        self.leaves[node] = (parent, record, commit.seq, key_gen, parent_key_gen)
        self.mounted = self.mounted or old is None and parent == self.mount_parent

    def check_generation(self, node, key_gen, old, commit):
        if node == commit.root and old is not None and self.head is None:
            require(key_gen == old[3] + 1, "staleKeyGeneration")
        elif node == commit.root:
            require(key_gen >= 1 and (old is None or key_gen in (old[3], old[3] + 1)), "staleKeyGeneration")
        elif old is None:
            require(key_gen >= 1, "staleKeyGeneration")
            require(commit.root in self.leaves, "objectMissing")
            require(key_gen <= self.leaves[commit.root][3], "staleKeyGeneration")
        else:
            require(key_gen == old[3] + self.is_stale(node, commit.root), "staleKeyGeneration")

    def check_place(self, node, parent, parent_key_gen, old, commit):
        require(node != parent, "treeCycle")
        require(parent in self.leaves, "objectMissing")
        fresh = not self.is_stale(parent, commit.root) and parent_key_gen == self.leaves[parent][3]
        require(fresh, "staleKeyGeneration")
        depth = len(self.path(parent))
        if old is None:
            require(depth <= DEPTH_AT_CREATION, "limitExceeded")
        elif old[0] != parent:
            require(node not in self.path(parent), "treeCycle")
            before = len(self.path(node)) - 1
            height = max((len(self.path(other)) - 1 - before for other in self.below(node)), default=0)
            require(depth <= before or depth + height <= DEPTH_AFTER_MOVES, "limitExceeded")

    def is_stale(self, node, root):
        while node != root:
            parent = self.leaves[node][0]
            if self.leaves[node][4] < self.leaves[parent][3]:
                return True
            node = parent
        return False

    def below(self, node):
        return [other for other in self.leaves if other != node and node in self.path(other)]

    def path(self, node):
        path = []
        while node in self.leaves:
            node = self.leaves[node][0]
            path.append(node)
        return path

    def state_root(self):
        """Compares the replayed states of two readers in one value; no format has it."""
        leaves = sorted(self.leaves.items())
        return merkle_root([
            leaf_hash(node + parent + record + u64(seq) + u32(gen) + u32(parent_gen))
            for node, (parent, record, seq, gen, parent_gen) in leaves])


def own_child(commit):
    return H("user-child", commit.tree + commit.root + commit.writer)[:16]


# --- messages (3.11) -------------------------------------------------------------------------------------------------


def message_node(sender, message):
    return H("message-node", sender + message)[:16]


class Envelope:
    def __init__(self, data):
        require(len(data) <= ENVELOPE_BYTES, "limitExceeded")
        reader = Reader(data)
        reader.preamble(b"ZDME")
        self.message, self.recipient, self.inbox = reader.take(16), reader.take(32), reader.take(32)
        self.enc_gen = reader.u32()
        require(self.enc_gen >= 1, "nonCanonicalEncoding")
        self.sealed = reader.v32(ENVELOPE_BYTES)
        self.attachment = reader.take(56) if reader.remaining else None
        reader.finish()

    def open(self, user, inbox, seed):
        require((self.recipient, self.inbox) == (user, inbox), "messageWrongRecipient")
        context = self.message + self.recipient + self.inbox + u32(self.enc_gen)
        try:
            plaintext = unwrap(seed, "message", context, self.sealed)
        except Exception as error:
            raise ZDCError("messageAuthFailed") from error
        body = parse_body(plaintext)
        require((body["recipient"], body["inbox"]) == (user, inbox), "messageWrongRecipient")
        require(body["encGen"] == self.enc_gen, "messageWrongRecipient")
        require(body["message"] == self.message, "messageAuthFailed")
        named = body["payload"][:56] if body["kind"] == 3 else None
        require(named == self.attachment, "messageAuthFailed")
        return body


def parse_body(plaintext):
    require(len(plaintext) <= ENVELOPE_BYTES, "limitExceeded")
    reader = Reader(plaintext)
    reader.preamble(b"ZDMB")
    body = {
        "message": reader.take(16), "sender": reader.take(32), "senderGen": reader.u32(), "device": reader.take(8),
        "recipient": reader.take(32), "inbox": reader.take(32), "encGen": reader.u32(), "seq": reader.u64()}
    require(body["seq"] >= 1, "nonCanonicalEncoding")
    body["timeMs"] = reader.u64()
    size, root = reader.u64(), reader.take(32)
    require((size == 0) == (root == ZERO32), "nonCanonicalEncoding")
    require(size == 0, "unsupportedVersion")
    body["heads"] = read_heads(reader, MESSAGE_HEADS)
    zones = [zone for zone, _, _ in body["heads"]]
    require(zones == sorted(set(zones)), "nonCanonicalEncoding")
    body["kind"] = reader.u8()
    require(body["kind"] in (1, 2, 3, 5, 6, 7, 8), "unsupportedVersion")
    body["payload"] = reader.v32(MESSAGE_BYTES)
    if body["kind"] == 3:
        check_attachment(body["payload"])
    if body["kind"] in (5, 6):
        check_zone_key(body)
    if body["kind"] == 7:
        check_profile(body["payload"])
    if body["kind"] == 8:
        check_burn(body)
    body["signed"] = plaintext[:len(plaintext) - reader.remaining]
    body["signature"] = reader.take(64)
    length = max(1024, padme(len(plaintext) - reader.remaining))
    require(len(plaintext) == length and not any(reader.take(reader.remaining)), "nonCanonicalEncoding")
    return body


def check_zone_key(body):
    """A request for a zone's key, or the answer with the key: no number, no heads, and one ID for each key and direction."""
    reader = Reader(body["payload"])
    name = reader.take(52)
    if body["kind"] == 5:
        reader.take(32)
    reader.finish()
    require(name[48:] != bytes(4) and body["seq"] == 1 and not body["heads"], "nonCanonicalEncoding")
    label = "key-answer-message" if body["kind"] == 5 else "key-request-message"
    known = H(label, body["sender"] + body["recipient"] + name)[:16]
    require(body["message"] == known, "nonCanonicalEncoding")


def check_burn(body):
    """The request of a sender to delete one of their messages, which has no number and no heads."""
    require(len(body["payload"]) == 16 and body["seq"] == 1 and not body["heads"], "nonCanonicalEncoding")
    known = H("burn-message", body["sender"] + body["recipient"] + body["payload"])[:16]
    require(body["message"] == known, "nonCanonicalEncoding")


def check_profile(payload):
    """A user's name and avatar."""
    reader = Reader(payload)
    require(reader.u8() == 1, "unsupportedVersion")
    name = reader.v16(PROFILE_NAME_BYTES)
    reader.v16(PROFILE_AVATAR_BYTES)
    reader.finish()
    require(is_text(name), "nonCanonicalEncoding")
    require(not any(is_refused(ord(letter)) for letter in name.decode("utf-8")), "nonCanonicalEncoding")


def is_refused(scalar):
    ranges = (
        (0, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200B, 0x200B), (0x200E, 0x200F), (0x2028, 0x202E),
        (0x2060, 0x2060), (0x2066, 0x2069), (0xFEFF, 0xFEFF))
    return any(first <= scalar <= last for first, last in ranges)


def check_attachment(payload):
    """Content beside a message: blobID, length and root, which the envelope repeats, and what a record keeps secret."""
    reader = Reader(payload)
    reader.take(16)
    cipher_length = reader.u64()
    reader.take(64)
    data, metadata, thumbnail = reader.u64(), reader.u32(), reader.u32()
    tag = reader.take(16)
    reader.finish()
    check_sizes((metadata, thumbnail, data), cipher_length)
    require((thumbnail == 0) == (tag == ZERO16), "contentHeaderInvalid")


def read_heads(reader, limit):
    count = reader.u16()
    require(count <= limit, "limitExceeded")
    return [(reader.take(48), reader.u64(), reader.take(32)) for _ in range(count)]


# --- key file --------------------------------------------------------------------------------------------------------


def open_key_file(data, passphrase):
    reader = Reader(data)
    reader.preamble(b"ZDKF")
    log_n, r, p = reader.u8(), reader.u32(), reader.u32()
    require(log_n >= 17 and r >= 8 and p >= 1, "kdfParametersTooWeak")
    require(log_n <= 20 and r <= 16 and p <= 8, "limitExceeded")
    salt = reader.take(16)
    header = data[:reader.offset]
    sealed = reader.v32(1 << 10)
    reader.finish()
    text = unicodedata.normalize("NFC", passphrase.decode("utf-8")).encode("utf-8")
    key = Scrypt(salt=salt, length=32, n=1 << log_n, r=r, p=p).derive(text)
    return open_or("authenticationFailure", key, "key-file", header, sealed)


# --- vectors ---------------------------------------------------------------------------------------------------------


def pattern(count):
    return bytes((i * 31 + i // 256) % 251 for i in range(count))


class Case:
    """One vector file."""

    def __init__(self, path=None, members=None):
        self.members = json.loads(path.read_text("utf-8")) if members is None else members

    def __getitem__(self, name):
        return self.members[name]

    def __contains__(self, name):
        return name in self.members

    def bytes(self, name):
        return bytes.fromhex(self.members[name])

    def same(self, name, value, stated=None):
        """Compares what was computed with what the file states; bytes are hexadecimal there."""
        value = value.hex() if isinstance(value, bytes) else value
        stated = self.members[name] if stated is None else stated
        if value != stated:
            raise Mismatch(f"{name} is {value!r:.80}, the file says {stated!r:.80}")


def check_account(case):
    key = access_key(case["words"].split())
    case.same("entropy", key)
    case.same("words", " ".join(to_words(key)))
    case.same("lookupID", D(key, "account-lookup")[:16])
    case.same("loginPub", sign_public(D(key, "login-sign")))
    case.same("rootPub", sign_public(D(key, "root-sign")))
    case.same("keyringKey", D(key, "keyring"))
    identity = Identity([Link(case.bytes("genesis"))])
    case.same("userID", identity.user)
    case.same("userIDText", z_base_32(identity.user))
    case.same("rootPub", identity.last.root_pub)
    _, entries = open_keyring(case.bytes("keyring"), D(key, "keyring"), identity, 0)
    case.same("signSeed", entries[0]["seed"])
    case.same("encSeed", entries[1]["seed"])
    heads = b"".join(check_trunk(case, trunk, identity) for trunk in case["trunks"])
    claim = (2, H("tree-claim", case["appTreeID"].encode()) + heads)
    if identity.claims != [claim]:
        raise Mismatch("the tree claim is not that of the four genesis commits")


def check_trunk(case, trunk, identity):
    acl, commit = ACL(bytes.fromhex(trunk["acl"])), Commit(bytes.fromhex(trunk["commit"]))
    grant, record = Grant(bytes.fromhex(trunk["grant"])), Record(bytes.fromhex(trunk["record"]))
    zone = Zone(Directory([identity]))
    zone.apply(commit, acl)
    case.same("treeID", tree_id(identity.user, trunk["trunk"], case["appTreeID"]), trunk["treeID"])
    if (acl.tree.hex(), acl.root) != (trunk["treeID"], acl.tree[:16]):
        raise Mismatch("the access list is not that of the trunk")
    key = open_grant(grant, acl, identity.user, case.bytes("encSeed"))
    case.same("nodeKey", key, trunk["nodeKey"])
    if zone.leaves != {acl.root: (ZERO16, record.hash, 0, 1, 0)}:
        raise Mismatch("the genesis does not put the root record")
    if (record.version, record.prev) != (1, ZERO32):
        raise Mismatch("the root record is not a first version")
    open_root(record, key, acl.commitments)
    return commit.hash


def check_mnemonic(case):
    access_key(case["words"].split(" "))


def chain_of(case):
    return Identity([Link(bytes.fromhex(link)) for link in case["links"]])


def check_chain(case):
    identity = chain_of(case)
    require(identity.user == case.bytes("userID"), "userIDMismatch")


def check_keyring(case):
    version, entries = open_keyring(case.bytes("blob"), case.bytes("key"), chain_of(case), case["pinnedVersion"])
    case.same("version", version)
    case.same("entries", entries)


def check_names(case):
    for row in case["names"]:
        folded = fold(bytes.fromhex(row["given"]).decode("utf-8"))
        case.same("folded", folded, row["folded"])
        case.same("tag", name_tag(case.bytes("nodeKey"), folded), row["tag"])


def check_name(case):
    fold(case.bytes("given").decode("utf-8"))


def check_record(case):
    record = Record(case.bytes("record"))
    if "zoneKey" in case:
        key, private = open_root(record, case.bytes("zoneKey"), (case.bytes("nkCommit"), case.bytes("ckCommit")))
    else:
        key, private = open_record(record, *parent_keys(case, record))
    case.same("recordHash", record.hash)
    case.same("nodeKey", key)
    case.same("name", private["name"])
    case.same("createdMs", private["createdMs"])
    if "private" in case:
        case.same("private", private["plaintext"])
    if private["unknownExtras"] or "unknownExtras" in case:
        case.same("unknownExtras", private["unknownExtras"])
    if "device" in private or "device" in case:
        case.same("device", private["device"])
        case.same("recipients", [user.hex() for user in private["recipients"]])
        case.same("served", [user.hex() for user in private["served"]])
    if "content" in case:
        inner = private["content"]
        metadata, thumbnail, data = inner["sizes"]
        case.same("content", {
            "key": inner["key"].hex(), "dataSize": data, "metadataSize": metadata, "thumbnailSize": thumbnail,
            "thumbnailTag": inner["tag"].hex()})


def parent_keys(case, record):
    """The parent's key of the generation that the record names, if the parent still has it."""
    key, generation = case.bytes("parentKey"), case["parentKeyGen"]
    if "parentHistory" not in case:
        return key, generation
    older = dict(open_history(case.bytes("parentHistory"), record.tree, record.parent, key, generation))
    wanted = record.parent_key_gen
    return (older[wanted], wanted) if wanted in older else (key, generation)


def check_history(case):
    entries = open_history(
        case.bytes("wrap"), case.bytes("treeID"), case.bytes("nodeID"), case.bytes("nodeKey"), case["keyGen"])
    case.same("entries", [{"gen": generation, "key": key.hex()} for generation, key in entries])


def check_grant(case):
    key = open_grant(Grant(case.bytes("grant")), ACL(case.bytes("acl")), case.bytes("user"), case.bytes("encSeed"))
    case.same("granted", key)


def replay_log(case, steps):
    others = [Identity([Link(bytes.fromhex(link))]) for link in (case["others"] if "others" in case else [])]
    zone = Zone(Directory([chain_of(case)] + others))
    asked = (case.bytes("treeID"), case.bytes("zoneRoot")) if "zoneRoot" in case else None
    for step in steps:
        acl = ACL(bytes.fromhex(step["acl"])) if "acl" in step else None
        state = bytes.fromhex(step["list"]) if "list" in step else None
        commit = Commit(bytes.fromhex(step["commit"]))
        require(asked in (None, (commit.tree, commit.root)), "recordBindingMismatch")
        zone.apply(commit, acl, state)
    return zone


def check_log(case):
    zone = replay_log(case, case["commits"])
    case.same("head", zone.head)
    case.same("stateRoot", zone.state_root())


def check_split(case):
    """A member of both zones: the parent's log, and the genesis that it names."""
    parent = replay_log(case, case["commits"])
    parent.check_genesis(Commit(bytes.fromhex(case["genesis"]["commit"])))
    state = b"".join(state_bytes(parent.split[3]))
    case.same("list", state)
    child = replay_log(case, [case["genesis"] | {"list": state.hex()}])
    case.same("head", child.head)


def check_list_edit(case):
    case.same("aclHash", apply_edit(case.bytes("edit"), ACL(case.bytes("acl"))).hash)


def check_attach(case):
    reader = Reader(case.bytes("bundle"))
    require(reader.u8() == 9, "nonCanonicalEncoding")
    item = Reader(reader.v32(64))
    reader.finish()
    require(item.remaining == 64, "nonCanonicalEncoding")
    case.same("treeID", item.take(32))
    case.same("nodeID", item.take(16))
    case.same("blobID", item.take(16))


def check_content(case):
    sizes = (case["metadataSize"], case["thumbnailSize"], case["dataSize"])
    metadata, thumbnail, body = (pattern(size) for size in sizes)
    unpadded = 64 + sum(sizes)
    padding = padded_length(unpadded, case["padding"]) - unpadded
    plaintext = content_header(sizes, padding, thumbnail_tag(thumbnail)) + metadata + thumbnail + body + bytes(padding)
    seal_key = case.bytes("sealKey" if "sealKey" in case else "key")
    seal_blob = case.bytes("sealBlobID" if "sealBlobID" in case else "blobID")
    data = seal(seal_key, "content", seal_blob, plaintext, case.bytes("salt"))
    case.same("cipherLength", len(data))
    case.same("cipherSHA256", hashlib.sha256(data).digest())
    case.same("thumbnailTag", thumbnail_tag(thumbnail))
    leaves = [leaf_hash(data[start:end]) for start, end in leaf_ranges(len(data))]
    case.same("leafCount", len(leaves))
    case.same("leavesSHA256", hashlib.sha256(b"".join(leaves)).digest())
    root = case.bytes("contentRoot")
    data = change_content(data, case["change"] if "change" in case else [])
    if "rehash" in case and case["rehash"] == 1:
        leaves = [leaf_hash(data[start:end]) for start, end in leaf_ranges(len(data))]
        root = merkle_root(leaves)
    content = {"bytes": data, "blobID": case.bytes("blobID"), "cipherLen": case["cipherLength"], "contentRoot": root}
    opened = open_content(content, leaves, sizes, case.bytes("thumbnailTag"), case.bytes("key"))
    if opened != metadata + thumbnail + body:
        raise Mismatch("the sections are not those that were sealed")


def change_content(data, steps):
    for step in steps:
        if "flip" in step:
            changed = bytearray(data)
            changed[step["flip"] // 8] ^= 1 << step["flip"] % 8
            data = bytes(changed)
        if "truncate" in step:
            data = data[:step["truncate"]]
        if "append" in step:
            data += bytes.fromhex(step["append"])
        if "swap" in step:
            start = PREFIX + step["swap"] * SEALED_CHUNK
            one, two = data[start:start + SEALED_CHUNK], data[start + SEALED_CHUNK:start + 2 * SEALED_CHUNK]
            data = data[:start] + two + one + data[start + 2 * SEALED_CHUNK:]
    return data


def check_message(case):
    """A recipient who knows the sender's chain of one link."""
    body = Envelope(case.bytes("envelope")).open(case.bytes("user"), case.bytes("inbox"), case.bytes("encSeed"))
    sender = Identity([Link(case.bytes("senderLink"))])
    require(body["sender"] == sender.user, "messageAuthFailed")
    public = Directory([sender]).sign_key(body["sender"], body["senderGen"])
    require(verifies(public, "message", body["signed"], body["signature"]), "messageAuthFailed")
    case.same("payload", body["payload"])
    case.same("nodeID", message_node(body["sender"], body["message"]))
    case.same("seq", body["seq"])


def check_key_file(case):
    case.same("key", open_key_file(case.bytes("file"), case.bytes("passphrase")))


def check_put_vector(case):
    """A put in a trunk, of a node that is not its root."""
    record = Record(case.bytes("record"))
    previous = Record(case.bytes("previous")) if "previous" in case else None
    put = (1, record.node, record.parent, record.hash, record.key_gen, record.parent_key_gen)
    check_put(record, put, (record.tree, record.tree[:16]), previous)
    case.same("recordHash", record.hash)


def check_long_chain(case):
    """A chain that is made here: a genesis, and claims of the stated lengths."""
    seeds = [D(case.bytes("accessKey"), "root-sign"), case.bytes("signSeed"), case.bytes("encSeed")]
    links = [sign_seed_link(0, case["timeMs"], *seeds, ZERO32)]
    user = H("user-id", links[0][:1372])
    for length in [2045] * case["fullLinks"] + [case["lastValue"]]:
        place = (len(links), H("link", links[-1]), user)
        links.append(sign_seed_link(3, case["timeMs"], *seeds, ZERO32, place, u8(1) + v16(b"a" * length)))
    case.same("byteCount", sum(len(link) for link in links))
    case.same("head", H("link", links[-1]))
    Identity([Link(link) for link in links])


def check_device_link(case):
    """Both devices: the one of the account checks the offer and the nonce, the new one opens the answer."""
    code, offer, nonce = LinkCode(case["code"]), case.bytes("offer"), case.bytes("nonce")
    code.check(offer)
    answer = code.open(case.bytes("answer"), case.bytes("seed"))
    check_nonce(offer, nonce)
    for name in ("accessKey", "user", "chainSeq", "chainHash"):
        case.same(name, answer[name])
    case.same("digits", code.digits(offer, nonce, answer["user"]))
    case.same("heads", [
        {"treeID": zone[:32].hex(), "zoneRoot": zone[32:].hex(), "seq": seq, "head": head.hex()}
        for zone, seq, head in answer["heads"]])


def check_cloud_path(case):
    for name, value in parse_cloud_path(case["text"]).items():
        case.same(name, value)


def check_safety_number(case):
    case.same("digits", safety_number([bytes.fromhex(user) for user in case["users"]]))


def check_identity_code(case):
    code = IdentityCode(case["text"])
    require("meant" not in case or case.bytes("meant") == code.user, "userIDMismatch")
    code.check([Link(bytes.fromhex(link)) for link in case["links"]])
    case.same("userID", code.user)
    case.same("seq", code.seq)
    case.same("head", code.head)


def check_mount(case):
    case.same("nodeID", H("mount", case.bytes("genesis"))[:16])


def check_remount(case):
    case.same("nodeID", H("remount", case.bytes("treeID") + case.bytes("zoneRoot") + case.bytes("pointer"))[:16])


def check_tree(case):
    copy = TreeCopy(case.members)
    for reader in case["readers"]:
        member = TreeMember(copy, bytes.fromhex(reader["user"]), bytes.fromhex(reader["encSeed"]))
        case.same("tree", [
            {"path": path} if data is None else {"path": path, "size": len(data)}
            for path, data in member.tree()], reader["tree"])
        case.same("closed", len(member.closed_records()), reader["closed"])


CHECKS = {
    "account": check_account, "mnemonic": check_mnemonic, "chain": check_chain, "keyring": check_keyring,
    "names": check_names, "name": check_name, "record": check_record, "history": check_history,
    "grant": check_grant, "log": check_log, "split": check_split, "list-edit": check_list_edit,
    "attach": check_attach, "message": check_message, "content": check_content, "key-file": check_key_file,
    "put": check_put_vector, "long-chain": check_long_chain, "device-link": check_device_link,
    "cloud-path": check_cloud_path, "safety-number": check_safety_number, "identity-code": check_identity_code,
    "mount": check_mount, "remount": check_remount, "tree": check_tree,
}


def check(path):
    """None if the vector does what it says, else what is wrong."""
    case = Case(path)
    if case["kind"] not in CHECKS:
        return f"no reader for vectors of kind {case['kind']}"
    try:
        CHECKS[case["kind"]](case)
        outcome = "ok"
    except ZDCError as error:
        outcome = error.code
    except Mismatch as error:
        return str(error)
    if outcome != case["expect"]:
        return f"expected {case['expect']}, got {outcome}"
    return None


def check_folder(folder):
    paths = sorted(pathlib.Path(folder).glob("*.json"))
    counts, wrong = {}, 0
    for path in paths:
        problem = check(path)
        case = Case(path)
        row = counts.setdefault(case["kind"], [0, 0])
        row[case["expect"] != "ok"] += 1
        if problem:
            wrong += 1
            print(f"{path.name}: {problem}")
    print(f"{'kind':<14}{'opened':>8}{'refused':>9}")
    for kind, (opened, refused) in sorted(counts.items()):
        print(f"{kind:<14}{opened:>8}{refused:>9}")
    print(f"{len(paths)} vectors, {wrong} wrong")
    return 1 if wrong or not paths else 0


# --- a shared tree, in the copy of a server ---------------------------------------------------------------------------

TREE_OBJECTS = ("contents", "grants", "links", "others", "records", "zones")


class Moment:
    """A zone's log after one of its commits."""

    def __init__(self, zone, puts):
        self.list, self.leaves, self.head, self.puts = zone.acl, dict(zone.leaves), zone.head, puts


class TreeCopy:
    """Chains, logs, lists, grants, records and contents; verified as far as no key is needed."""

    def __init__(self, members):
        objects = [bytes.fromhex(text) for text in members["records"]]
        self.by_hash = {H("record", data): data for data in objects}
        self.contents = {bytes.fromhex(row["blobID"]): bytes.fromhex(row["bytes"]) for row in members["contents"]}
        owner = Identity([Link(bytes.fromhex(text)) for text in members["links"]])
        others = [Identity([Link(bytes.fromhex(text))]) for text in members["others"]]
        self.owner, self.directory, self.splits = owner, Directory([owner] + others), {}
        self.zones = [self.replay(steps) for steps in members["zones"]]
        self.grants = [Grant(bytes.fromhex(text)) for text in members["grants"]]
        self.check_grants()
        self.check_contents()

    def record(self, record_hash):
        require(record_hash in self.by_hash, "objectMissing")
        return Record(self.by_hash[record_hash])

    def moments(self):
        return [moment for zone in self.zones for moment in zone]

    def puts(self):
        return [put for moment in self.moments() for put in moment.puts]

    def replay(self, steps):
        zone, moments = Zone(self.directory), []
        for step in steps:
            commit = Commit(bytes.fromhex(step["commit"]))
            acl = ACL(bytes.fromhex(step["acl"])) if "acl" in step else None
            state = bytes.fromhex(step["list"]) if "list" in step else None
            first, before, rights = zone.head is None, dict(zone.leaves), zone.acl or acl
            if state is not None:
                before = parse_state(state)
            zone.apply(commit, acl, state)
            if first:
                self.check_beginning(commit, zone.acl)
            moments.append(self.moment(zone, commit, before, rights))
            if zone.split:
                self.splits[commit.tree, zone.split[0]] = (zone.split, zone.acl)
        return moments

    def moment(self, zone, commit, before, rights):
        puts = [operation for operation in commit.operations if operation[0] == 1]
        for put in puts:
            record = self.record(put[3])
            previous = self.record(before[put[1]][1]) if put[1] in before else None
            check_put(record, put, (commit.tree, commit.root), previous)
            require((record.writer, record.writer_gen) == (commit.writer, commit.writer_gen), "recordBindingMismatch")
            if record.commitments:
                require(record.commitments == zone.acl.commitments, "keyCommitmentMismatch")
            narrowed = rights.entries[commit.writer][0] & RECORDS_ONLY
            require(not (narrowed and record.content), "writerNotAuthorized")
            if commit.genesis_state and put[1] == commit.root:
                follows = record.version == previous.version + 1 and record.content == previous.content
                require(follows, "splitMismatch")
        return Moment(zone, puts)

    def check_beginning(self, commit, acl):
        """A trunk begins as its owner's chain says, another zone as the split says."""
        if commit.root == commit.tree[:16]:
            name = H("tree-claim", acl.app_tree.encode())
            claims = [value[32:] for kind, value in self.owner.claims if kind == 2 and value[:32] == name]
            start = 32 * (acl.trunk - 1)
            require(claims and claims[0][start:start + 32] == commit.hash, "zoneForkDetected")
            return
        require((commit.tree, commit.root) in self.splits, "splitMismatch")
        (_, genesis, parent_head, leaves), _ = self.splits[commit.tree, commit.root]
        named = (parent_head, state_list_root(leaves), len(leaves))
        require(commit.hash == genesis and commit.genesis_state == named, "splitMismatch")

    def check_grants(self):
        """Each grant is one that a list names, and each list has its grants."""
        named = {
            (moment.list.tree, moment.list.root, moment.list.key_gen, user, entry[2])
            for moment in self.moments() for user, entry in moment.list.entries.items()}
        for grant in self.grants:
            place = (grant.tree, grant.root, grant.key_gen, grant.user, H("grant", grant.wrap))
            require(place in named, "grantHashMismatch")
        require(len(named) == len(self.grants), "grantMissing")

    def check_contents(self):
        """Each content is one that a record names, and has its length and leaves."""
        records = [self.record(put[3]) for put in self.puts()]
        named = {record.content["blobID"]: record.content for record in records if record.content}
        for blob, data in self.contents.items():
            require(blob in named, "objectMissing")
            leaves = [leaf_hash(data[start:end]) for start, end in leaf_ranges(len(data))]
            same = (len(data), merkle_root(leaves)) == (named[blob]["cipherLen"], named[blob]["contentRoot"])
            require(same, "contentHashMismatch")
        require(set(named) == set(self.contents), "objectMissing")


class TreeMember:
    """What one member can open: the logs up to the last commit whose list names them."""

    def __init__(self, copy, user, seed):
        self.copy, self.user, self.seed = copy, user, seed

    def last(self, zone):
        """The number of commits up to the last one whose list names the user."""
        return max((index + 1 for index, moment in enumerate(zone) if self.user in moment.list.entries), default=0)

    def zone_key(self, acl):
        wanted = acl.entries[self.user][2]
        grants = [grant for grant in self.copy.grants if H("grant", grant.wrap) == wanted]
        require(grants, "grantMissing")
        return open_grant(grants[0], acl, self.user, self.seed)

    def tree(self):
        """(path, data) in the order of the paths' bytes; data is None for a node without content."""
        home = self.copy.zones[0]
        require(self.last(home), "grantMissing")
        nodes = {}
        self.read_zone(home[self.last(home) - 1], "", nodes)
        return sorted(nodes.items(), key=lambda node: node[0].encode())

    def read_zone(self, moment, path, nodes):
        acl = moment.list
        key = self.zone_key(acl)
        require(acl.root in moment.leaves, "objectMissing")
        open_root(self.copy.record(moment.leaves[acl.root][1]), key, acl.commitments)
        keys = {acl.key_gen: key} | dict(open_history(acl.history, acl.tree, acl.root, key, acl.key_gen))
        self.read_children(moment, acl.root, keys, path, nodes)

    def read_children(self, moment, parent, keys, path, nodes):
        for node, leaf in moment.leaves.items():
            if leaf[0] != parent:
                continue
            record, parent_gen = self.copy.record(leaf[1]), leaf[4]
            require(parent_gen in keys, "staleKeyGeneration")
            key, private = open_record(record, keys[parent_gen], parent_gen)
            place = path + "/" + private["name"].decode()
            require(place not in nodes, "duplicateName")
            nodes[place] = self.data(record, private)
            history = open_history(record.history_wrap, record.tree, node, key, record.key_gen)
            self.read_children(moment, node, {record.key_gen: key} | dict(history), place, nodes)
            if private["pointer"]:
                self.follow(private["pointer"], place, nodes)

    def follow(self, pointer, path, nodes):
        """Shows a zone in place of a pointer, if the user is a member of it."""
        for zone in self.copy.zones:
            named = (zone[0].list.tree, zone[0].list.root, zone[0].head)
            if named == (pointer["treeID"], pointer["zoneRoot"], pointer["genesis"]) and self.last(zone):
                self.read_zone(zone[self.last(zone) - 1], path, nodes)

    def data(self, record, private):
        if not record.content:
            return None
        content, inner = record.content, private["content"]
        data = self.copy.contents[content["blobID"]]
        leaves = [leaf_hash(data[start:end]) for start, end in leaf_ranges(len(data))]
        plaintext = open_content(content | {"bytes": data}, leaves, inner["sizes"], inner["tag"], inner["key"])
        return plaintext[sum(inner["sizes"][:2]):]

    def closed_records(self):
        """The records of the commits behind the last one whose list names the user. None of them opens."""
        keys, later = self.known_keys(), []
        for zone in self.copy.zones:
            later += zone[self.last(zone):]
        records = [self.copy.record(put[3]) for moment in later for put in moment.puts]
        opened = [record for record in records if any(opens_anything(record, key) for key in keys)]
        opened += [
            moment for moment in later for key in keys
            if moment.list.history and opens(
                open_history, moment.list.history, moment.list.tree, moment.list.root, key, moment.list.key_gen)]
        if opened or not keys:
            raise Mismatch("a former member opens what was written later")
        return records

    def known_keys(self):
        """The keys of all zones and nodes that the user can open, of all generations."""
        lists = [moment.list for moment in self.copy.moments() if self.user in moment.list.entries]
        keys = []
        for acl in lists:
            key = self.zone_key(acl)
            history = open_history(acl.history, acl.tree, acl.root, key, acl.key_gen)
            keys += [new for new in [key] + [old for _, old in history] if new not in keys]
        records = [self.copy.record(put[3]) for put in self.copy.puts()]
        for key in keys:
            for record in records:
                keys += [new for new in keys_below(record, key) if new not in keys]
        return keys


def opens(function, *arguments):
    try:
        function(*arguments)
        return True
    except ZDCError:
        return False


def opens_anything(record, key):
    """Whether a key opens something of a record, as that of its node or of the parent."""
    return (opens(record.open, key) or opens(open_record, record, key, record.parent_key_gen)
            or record.history_wrap and opens(
                open_history, record.history_wrap, record.tree, record.node, key, record.key_gen))


def keys_below(record, key):
    """The keys of a record's node, if the key is that of its parent."""
    try:
        node_key, _ = open_record(record, key, record.parent_key_gen)
    except ZDCError:
        return []
    history = open_history(record.history_wrap, record.tree, record.node, node_key, record.key_gen)
    return [node_key] + [old for _, old in history]


def print_tree(path):
    case = Case(pathlib.Path(path))
    copy = TreeCopy(case.members)
    for reader in case["readers"]:
        member = TreeMember(copy, bytes.fromhex(reader["user"]), bytes.fromhex(reader["encSeed"]))
        print(f"as {z_base_32(member.user)}:")
        for place, data in member.tree():
            print(f"  {place}" if data is None else f"  {place}  {len(data)} bytes")
        print(f"  {len(member.closed_records())} records of later commits do not open")
    return 0


# --- mutations -------------------------------------------------------------------------------------------------------


def texts(value):
    """The hexadecimal texts of a value with their containers, in the order of the file."""
    keys = sorted(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        if isinstance(value[key], str):
            yield value, key
        else:
            yield from texts(value[key])


def flip(value, bit):
    """Flips a bit of a copy, counted over all texts. Returns a copy."""
    value = json.loads(json.dumps(value))
    for container, key in texts(value):
        count = len(container[key]) * 4
        if bit < count:
            data = bytearray.fromhex(container[key])
            data[bit // 8] ^= 1 << bit % 8
            container[key] = data.hex()
            return value
        bit -= count
    raise Mismatch("a bit outside of the copy")


def refusal(members):
    """The name of the error with which a copy is refused, or what else happens."""
    try:
        check_tree(Case(members=members))
    except ZDCError as error:
        return error.code, True
    except Exception as error:  # a reader must not fail in any other way
        return f"{type(error).__name__}: {error}", False
    return "accepted", False


def mutate(path, count=1000, seed="zdc1 mutations"):
    """Every byte of a copy is signed or sealed, or the name of an object that is, so there is none to leave out."""
    members = Case(pathlib.Path(path)).members
    check_tree(Case(members=members))
    served = {name: members[name] for name in TREE_OBJECTS}
    size = sum(len(container[key]) * 4 for container, key in texts(served))
    counts, wrong = {}, 0
    for number in range(int(count)):
        bit = int.from_bytes(hashlib.sha256(seed.encode() + u64(number)).digest()[:8], "big") % size
        code, refused = refusal(members | flip(served, bit))
        counts[code] = counts.get(code, 0) + 1
        if not refused:
            wrong += 1
            print(f"copy {number}, bit {bit}, seed {seed}: {code}")
    if (count, seed) == (1000, "zdc1 mutations") and counts != members["refusals"]:
        wrong += 1
        print("the errors are not those that the file states")
    for code, number in sorted(counts.items()):
        print(f"{code:<24}{number:>6}")
    print(f"{count} altered copies of {size // 8} bytes, {wrong} wrong")
    return 1 if wrong else 0


# --- the other direction: vectors made here --------------------------------------------------------------------------


def write_folder(folder):
    """Seals a chain, a keyring, a record, a grant and a content with this code, for the Swift side to open."""
    account = Case(folder / "account.json")
    home = account["trunks"][0]
    acl, zone_key = ACL(bytes.fromhex(home["acl"])), bytes.fromhex(home["nodeKey"])
    cases = {
        "python-keyring": write_keyring(account),
        "python-record": write_record(acl, zone_key, account.bytes("userID")),
        "python-grant": write_grant(account, acl, zone_key),
        "python-content": write_content(),
    }
    for name, members in cases.items():
        members |= {"about": "made by the independent reader", "expect": "ok"}
        (folder / f"{name}.json").write_text(json.dumps(members, indent=2, sort_keys=True) + "\n", "utf-8")
        print(f"wrote {name}")
    return check_folder(folder)


def sign_seed_link(
        kind, time_ms, root_seed, sign_seed, enc_seed, keyring_hash, place=(0, ZERO32, ZERO32), claims=b""):
    """A link with keys of generation 1; `place` is its seq, the hash of the one before, and the user."""
    seq, prev, user = place
    unsigned = b"ZDIL" + u8(1) + u8(1) + u8(kind) + u32(seq) + prev + user + u64(time_ms) + sign_public(root_seed)
    unsigned += u32(1) + sign_public(sign_seed) + u32(1) + xwing_public(enc_seed) + u8(0) + u64(1) + keyring_hash
    unsigned += v16(claims)
    return unsigned + sign(root_seed, "link", unsigned) + bytes(64) + sign(sign_seed, "link", unsigned)


def write_keyring(account):
    key, sign_seed, enc_seed = os.urandom(32), os.urandom(32), os.urandom(32)
    root_seed, time_ms = D(key, "root-sign"), 1_790_000_000_000
    user = H("user-id", sign_seed_link(0, time_ms, root_seed, sign_seed, enc_seed, ZERO32)[:1372])
    seeds = [(1, sign_seed), (2, enc_seed)]
    plaintext = b"ZDKR" + u8(1) + u8(1) + u64(1) + user + u16(2)
    plaintext += b"".join(u8(kind) + u32(1) + u8(1) + u64(time_ms) + seed for kind, seed in seeds)
    plaintext += bytes(-len(plaintext) % 512)
    blob = seal(D(key, "keyring"), "keyring", user + u64(1), plaintext)
    link = sign_seed_link(0, time_ms, root_seed, sign_seed, enc_seed, H("keyring-blob", blob))
    return {
        "kind": "keyring", "links": [link.hex()], "key": D(key, "keyring").hex(), "blob": blob.hex(),
        "pinnedVersion": 0, "version": 1, "entries": [
            {"kind": kind, "gen": 1, "status": 1, "createdMs": time_ms, "seed": seed.hex()} for kind, seed in seeds]}


def write_record(acl, zone_key, user):
    node, node_key, name = os.urandom(16), os.urandom(32), fold("Gr\u00fc\u00dfe aus Python")
    private = u8(1) + v16(name) + u64(5) + u8(0) + u16(0)
    private += bytes(-len(private) % 32)
    context = acl.tree + node + acl.root + u64(1) + u32(1)
    sealed = seal(D(content_capability(node_key), "record"), "record", context, private)
    wrap = seal(D(zone_key, "children"), "child-key", acl.tree + node + u32(1) + u32(1), node_key)
    record = b"ZDNR" + u8(1) + u8(1) + u16(0) + acl.tree + node + acl.root + u64(1) + ZERO32 + u32(1) + u32(1)
    record += v16(wrap) + v16(b"") + name_tag(zone_key, name) + v32(sealed) + user + u32(1) + u64(6)
    return {
        "kind": "record", "record": record.hex(), "parentKey": zone_key.hex(), "parentKeyGen": 1,
        "recordHash": H("record", record).hex(), "nodeKey": node_key.hex(), "name": name.hex(), "createdMs": 5,
        "private": private.hex()}


def write_grant(account, acl, zone_key):
    """An access list that the owner signed here, and in it the wrap for a friend."""
    friend_seed, friend = os.urandom(32), os.urandom(32)
    info = tagged("grant") + grant_context(acl, friend, 7)
    wrap = HPKE.encrypt(zone_key, xwing_public_key(xwing_public(friend_seed)), info)
    entries = sorted(acl.entries.items()) + [(friend, (1, 7, H("grant", wrap)))]
    nk, ck = acl.commitments
    unsigned = b"ZDAC" + u8(1) + u8(1) + acl.tree + acl.root + acl.owner + u8(acl.trunk)
    unsigned += v16(acl.app_tree.encode()) + u32(2) + acl.hash + u8(0) + u8(1) + u32(1) + nk + ck + v16(b"")
    unsigned += u16(len(entries))
    for user, (perms, enc_gen, wrap_hash) in sorted(entries):
        unsigned += user + u16(perms) + u32(enc_gen) + u8(1) + wrap_hash
    unsigned += acl.owner + u32(1) + u64(7)
    signed = unsigned + sign(account.bytes("signSeed"), "acl", unsigned)
    grant = b"ZDGR" + u8(1) + u8(1) + acl.tree + acl.root + u32(1) + friend + v16(wrap)
    return {
        "kind": "grant", "grant": grant.hex(), "acl": signed.hex(), "user": friend.hex(),
        "encSeed": friend_seed.hex(), "granted": zone_key.hex()}


def write_content():
    key, blob, salt, sizes = os.urandom(32), os.urandom(16), os.urandom(24), (11, 13, 70_001)
    metadata, thumbnail, body = (pattern(size) for size in sizes)
    padding = padme(64 + sum(sizes)) - 64 - sum(sizes)
    tag = thumbnail_tag(thumbnail)
    plaintext = content_header(sizes, padding, tag) + metadata + thumbnail + body + bytes(padding)
    data = seal(key, "content", blob, plaintext, salt)
    leaves = [leaf_hash(data[start:end]) for start, end in leaf_ranges(len(data))]
    return {
        "kind": "content", "key": key.hex(), "blobID": blob.hex(), "salt": salt.hex(), "metadataSize": sizes[0],
        "thumbnailSize": sizes[1], "dataSize": sizes[2], "padding": "padme", "thumbnailTag": tag.hex(),
        "cipherLength": len(data), "cipherSHA256": hashlib.sha256(data).hexdigest(), "leafCount": len(leaves),
        "leavesSHA256": hashlib.sha256(b"".join(leaves)).hexdigest(), "contentRoot": merkle_root(leaves).hex()}


def main(arguments):
    if arguments[:1] == ["vectors"]:
        arguments = arguments[1:]
    if len(arguments) == 2 and arguments[0] == "write":
        return write_folder(pathlib.Path(arguments[1]))
    if len(arguments) == 2 and arguments[0] == "tree":
        return print_tree(arguments[1])
    if 2 <= len(arguments) <= 4 and arguments[0] == "mutate":
        return mutate(*arguments[1:])
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return check_folder(arguments[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
