"""Signed model folders: what is unsigned, signed by another or changed is refused in one sentence."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.errors import ModelError
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
    record = {"algorithm": "ed25519", "key": "x", "signature": "00" * 64}
    (model / "manifest.sig").write_text(json.dumps(record))
    with pytest.raises(ModelError, match="another key"):
        lt.load(model, key=keys[1])


def test_keys_that_are_none_get_one_sentence(keys, model, tmp_path):
    private, public = keys
    with pytest.raises(ModelError, match="exists already; a key is never replaced"):
        make_keys(private)
    with pytest.raises(ModelError, match="is no private key in PEM"):
        sign_folder(model, public)
    with pytest.raises(ModelError, match="is no public key in PEM"):
        lt.load(model, key=private)
    with pytest.raises(ModelError, match="cannot be read"):
        lt.load(model, key=tmp_path / "nowhere")


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
    with pytest.raises(ModelError, match=r"new\.pub exists already; a key is never replaced\.$"):
        make_keys(tmp_path / "new")
    assert not (tmp_path / "new").exists()
