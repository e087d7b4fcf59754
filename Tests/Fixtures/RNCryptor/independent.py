"""RNCryptor's format as the Python package rncryptor has it: what Coffer is held against.

  independent.py seal|open password|keys SECRET SOURCE TARGET

SECRET is a file with the password in its first line, or with the two keys, 64 bytes. The package has the form with
passwords only; the form with keys is put together from its own functions."""

import pathlib
import sys

import rncryptor

HEADER, TAG = 18, 32


class Bytes(rncryptor.RNCryptor):
    """The package takes content for text when it opens it."""

    def post_decrypt_data(self, data):
        return data[: -data[-1]]


def seal_with_keys(cryptor: Bytes, keys: bytes, content: bytes) -> bytes:
    iv = cryptor.iv
    data = b"\x03\x00" + iv + cryptor._aes_encrypt(keys[:32], iv, cryptor.pre_encrypt_data(content))
    return data + cryptor._hmac(keys[32:], data)


def open_with_keys(cryptor: Bytes, keys: bytes, data: bytes) -> bytes:
    if data[:2] != b"\x03\x00" or cryptor._hmac(keys[32:], data[:-TAG]) != data[-TAG:]:
        raise rncryptor.DecryptionError("Bad data")
    content = cryptor._aes_decrypt(keys[:32], data[2:HEADER], data[HEADER:-TAG])
    return cryptor.post_decrypt_data(content)


def main() -> None:
    action, form, secret_file, source, target = sys.argv[1:]
    secret, data = pathlib.Path(secret_file).read_bytes(), pathlib.Path(source).read_bytes()
    cryptor = Bytes()
    if form == "keys":
        done = (seal_with_keys if action == "seal" else open_with_keys)(cryptor, secret, data)
    else:
        password = secret.split(b"\n")[0]
        done = cryptor.encrypt(data, password) if action == "seal" else cryptor.decrypt(data, password)
    pathlib.Path(target).write_bytes(done)


main()
