"""Signed model folders: what is unsigned, signed by another or changed is refused in one sentence."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.errors import ModelError, ParameterError
from longtail.storage import make_keys, sign_folder

pytest.importorskip("cryptography", reason="needs the extra [sign]")
EYE = np.eye(6, dtype=np.float32)


@pytest.fixture
def keys(tmp_path):
    return make_keys(tmp_path / "team")


@pytest.fixture
def model(tmp_path):
    return lt.OneVsAllClassifier().fit(EYE, EYE).save(tmp_path / "model")


def test_a_signed_model_is_loaded(keys, model):
    private, public = keys
    assert private.stat().st_mode & 0o777 == 0o600 and public.name == "team.pub"
    assert sign_folder(model, private).name == "manifest.sig"
    assert lt.load(model, key=public).n_labels_ == 6
    assert lt.load(model, key=public.read_bytes()).n_labels_ == 6
    assert lt.load(model).n_labels_ == 6  # without a key nobody asks


def test_an_unsigned_model_and_one_signed_by_another_are_refused(keys, model, tmp_path):
    public = keys[1]
    with pytest.raises(ModelError, match=r"model is not signed: it has no manifest\.sig\.$"):
        lt.load(model, key=public)
    sign_folder(model, make_keys(tmp_path / "stranger")[0])
    with pytest.raises(ModelError, match=r"was signed with another key than the one given\.$"):
        lt.load(model, key=public)


def test_a_changed_folder_is_refused(keys, model):
    private, public = keys
    sign_folder(model, private)
    manifest = model / "manifest.json"
    before = manifest.read_bytes()
    manifest.write_bytes(before.replace(b'"normalize": true', b'"normalize": false'))
    with pytest.raises(ModelError, match=r"manifest\.json was changed after it was signed\.$"):
        lt.load(model, key=public)
    manifest.write_bytes(before)
    file = next(model.glob("model.*.safetensors"))
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with pytest.raises(ModelError, match="its digest does not match the manifest"):
        lt.load(model, key=public, verify=False)  # a signature without digests would mean nothing


def test_saving_again_removes_the_signature(keys, model):
    sign_folder(model, keys[0])
    lt.OneVsAllClassifier(C=2.0).fit(EYE, EYE).save(model)
    with pytest.raises(ModelError, match="is not signed"):
        lt.load(model, key=keys[1])


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"algorithm": "none", "signature": ""}', '{"algorithm": 1}'])
def test_a_damaged_signature_is_refused(keys, model, text):
    (model / "manifest.sig").write_text(text)
    with pytest.raises(ModelError, match=r"manifest\.sig is damaged"):
        lt.load(model, key=keys[1])
    record = {"algorithm": "ed25519", "key": "0" * 32, "signature": "00" * 64}
    (model / "manifest.sig").write_text(json.dumps(record))
    with pytest.raises(ModelError, match="another key"):
        lt.load(model, key=keys[1])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text + " " * 5000, "is larger than a signature may be, 4096 bytes"),
        (lambda text: text + "{}\n", "is no signature in JSON"),
        (lambda text: text.replace('"key"', '"algorithm": "ed25519", "key"'), "the key 'algorithm' stands twice"),
        (lambda text: text.replace('"key"', '"more": 1, "key"'), "'more' is not known"),
        (lambda text: text.replace("ed25519", "none"), "'algorithm' must be one of"),
        (lambda text: text[:-4] + ' "\n}\n', "'signature' must be"),
        (lambda text: "[" * 3000, "is no signature in JSON"),
    ],
)
def test_a_signature_is_read_strictly(keys, model, change, sentence):
    file = sign_folder(model, keys[0])
    file.write_text(change(file.read_text()))
    with pytest.raises(ModelError, match=rf"manifest\.sig is damaged: .*{sentence}"):
        lt.load(model, key=keys[1])


def test_keys_that_are_none_are_arguments_that_are_wrong(keys, model, run, tmp_path):
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    private, public = keys
    with pytest.raises(ParameterError, match="exists already; a key is never replaced"):
        make_keys(private)
    with pytest.raises(ParameterError, match="is no private key in PEM without a password, but a public one"):
        sign_folder(model, public)
    with pytest.raises(ParameterError, match="is no public key in PEM, but a private one"):
        lt.load(model, key=private)
    with pytest.raises(ParameterError, match=r"key cannot be used: .*nowhere cannot be read: No such file"):
        lt.load(model, key=tmp_path / "nowhere")
    other = generate_private_key(SECP256R1()).public_key()
    pem = other.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ParameterError, match="it is a public key of another kind than Ed25519"):
        lt.load(model, key=pem)
    assert "--key cannot be used: " in run("verify", model, "--key", private, code=2)


@pytest.mark.parametrize("key", [5, "", b""])
def test_what_is_no_key_is_refused_by_its_name(model, key):
    with pytest.raises(ParameterError, match=r"^key must be a key in PEM, as bytes, or the path of its file; got "):
        lt.load(model, key=key)


def test_files_that_no_signature_covers_are_told_of(keys, model, run):
    sign_folder(model, keys[0])
    (model / "notes.txt").write_text("mine")
    said = run("verify", model, "--key", keys[1])
    assert "unnamed  notes.txt" in said and "is intact and signed" in said and "manifest.sig" not in said
    assert json.loads(run("verify", model, "--json"))["unnamed"] == ["notes.txt"]


def test_a_link_in_place_of_the_signature_is_not_followed(keys, model, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (model / "manifest.sig.tmp").symlink_to(tmp_path / "mine.txt")
    (model / "manifest.sig").symlink_to(tmp_path / "mine.txt")
    sign_folder(model, keys[0])
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_the_commands(keys, model, run, tmp_path):
    private, public = keys
    assert "wrote" in run("sign", "--new-key", tmp_path / "new")
    assert "manifest.sig" in run("sign", model, "--key", private)
    said = run("verify", model, "--key", public)
    assert "digest ok, schema ok" in said and f"is intact and signed with the key of {public}" in said
    assert json.loads(run("verify", model, "--key", public, "--json"))["signed"] is True
    assert "another key" in run("verify", model, "--key", tmp_path / "new.pub", code=4)
    assert "give MODEL and --key" in run("sign", model, code=2)


def test_a_damaged_model_is_not_signed(keys, model, run):
    arrays = next(model.glob("model.*.safetensors"))
    raw = arrays.read_bytes()
    arrays.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert "it was not signed" in run("sign", model, "--key", keys[0], code=4)
    assert not (model / "manifest.sig").exists()


def test_a_key_whose_public_half_exists_is_not_begun(tmp_path):
    (tmp_path / "new.pub").write_text("")
    with pytest.raises(ParameterError, match=r"new\.pub exists already; a key is never replaced\.$"):
        make_keys(tmp_path / "new")
    assert not (tmp_path / "new").exists()
