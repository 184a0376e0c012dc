"""What Annif's own tests ask of the Omikuji backend, asked of ours, and what only ours do."""

import json
import logging

import annif.backend
import annif.corpus
import pytest
from annif.corpus import Document
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from conftest import ARCHAEOLOGY, documents, write_corpus

TEXT = """Arkeologiaa sanotaan joskus myös muinaistutkimukseksi: kaivaus ja hautalöytö kertovat menneisyydestä,
esihistoriasta ja muinaisjäännöksistä."""
NO_ENCODER = {"experts": "tree,names"}  # the hybrid without torch


@pytest.fixture(scope="module", params=["longtail_tree", "longtail_hybrid"])
def name(request):
    return request.param


def make(name, project, **params):
    """Return a backend with parameters as projects.cfg gives them."""
    own = NO_ENCODER | params if name == "longtail_hybrid" else params
    return annif.backend.get_backend(name)(backend_id=name, config_params=own, project=project)


def test_default_parameters(name, project):
    params = make(name, project).params
    assert params["limit"] == 100 and params["calibrate"] == 0.1
    if name == "longtail_tree":
        assert params["min_df"] == 1 and params["ngram"] == 1


def test_suggest_without_a_model(name, project):
    with pytest.raises(NotInitializedException, match=f"{name}-model not found"):
        make(name, project).suggest([Document(text="example text")])


def test_train_cached_without_documents(name, project):
    with pytest.raises(NotInitializedException, match="no cached documents"):
        make(name, project).train("cached")


def test_train_without_documents(name, project, empty_corpus):
    with pytest.raises(NotSupportedException, match="with no documents"):
        make(name, project).train(empty_corpus)


def test_train_without_known_subjects(name, project, tmp_path, datadir):
    rows = [("nonexistent", ["http://example.com/nonexistent"]), ("...", [ARCHAEOLOGY])]
    corpus = annif.corpus.DocumentFileTSV(str(write_corpus(tmp_path / "odd.tsv", rows)), project.subjects)
    with pytest.raises(NotSupportedException, match="both words and a subject"):
        make(name, project).train(corpus)
    assert not (datadir / f"{name}-train.txt").exists() and not (datadir / f"{name}-model").exists()


def test_train(name, project, document_corpus, datadir):
    (datadir / f"{name}-model").mkdir()  # an empty folder is in nobody's way
    backend = make(name, project)
    assert not backend.is_trained
    backend.train(document_corpus)
    assert backend._model is not None and (datadir / f"{name}-model" / "manifest.json").exists()
    assert backend.is_trained and backend.modification_time is not None


def test_train_cached(name, project, datadir):
    before = (datadir / f"{name}-model" / "manifest.json").read_text()
    (datadir / f"{name}-model" / "manifest.json").unlink()
    backend = make(name, project)
    backend.train("cached", jobs=1)
    assert (datadir / f"{name}-model" / "manifest.json").read_text() == before  # the same documents, the same model


def test_suggest(name, project):
    batch = make(name, project, limit="3").suggest([Document(text=TEXT), Document(text="Vene ja laiva satamassa")])
    assert batch.array.shape == (2, 130)
    first, second = batch
    assert 0 < len(first) <= 3
    best = next(iter(first))
    assert best.subject_id == project.subjects.by_uri(ARCHAEOLOGY) and 0.5 < best.score <= 1.0
    assert project.subjects[next(iter(second)).subject_id].uri == "http://example.org/ships"


def test_scores_fall_from_rank_to_rank(name, project):
    found = list(make(name, project).suggest([Document(text=TEXT)])[0])
    scores = [suggestion.score for suggestion in found]
    assert len(found) == 6 and scores == sorted(scores, reverse=True) and len(set(scores)) == 6 and scores[-1] > 0


def test_a_text_without_known_words_gets_nothing(name, project):
    texts = ["j", "", "... 12 !", "zzzz qqqq"]
    assert [len(found) for found in make(name, project).suggest([Document(text=text) for text in texts])] == [0] * 4


def test_a_subject_that_left_the_vocabulary_is_not_suggested(name, project, vocabulary):
    from annif.vocab import SubjectIndexFilter

    whole = project.subjects
    project.subjects = SubjectIndexFilter(whole, exclude={ARCHAEOLOGY})
    try:
        found = make(name, project).suggest([Document(text=TEXT)])[0]
        assert len(found) == 5 and whole.by_uri(ARCHAEOLOGY) not in [hit.subject_id for hit in found]
    finally:
        project.subjects = whole


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"limit": "many"}, "limit must be a whole number; got 'many'."),
        ({"limit": "0"}, "limit must be a whole number >= 1; got 0."),
        ({"calibrate": "1,5"}, "calibrate must be a number; got '1,5'."),
        ({"calibrat": "0.1"}, "calibrat is no parameter of this backend. Did you mean 'calibrate'?"),
        ({"overlap": "two"}, "overlap must be a whole number or auto; got 'two'."),
    ],
)
def test_a_bad_parameter_is_named_in_one_sentence(name, project, params, sentence):
    with pytest.raises(ConfigurationException) as caught:
        make(name, project, **params).suggest([Document(text=TEXT)])
    assert str(caught.value) == sentence


def test_a_bad_parameter_stops_a_training_before_anything_is_written(project, document_corpus, datadir):
    before = (datadir / "longtail_tree-train.txt").read_bytes()
    with pytest.raises(ConfigurationException, match="max_leaf must be"):
        make("longtail_tree", project, max_leaf="0").train(document_corpus)
    with pytest.raises(ConfigurationException, match="stem cannot be given in a project with an analyzer"):
        make("longtail_tree", project, stem="finnish").train(document_corpus)
    assert (datadir / "longtail_tree-train.txt").read_bytes() == before


def test_parameters_of_omikuji_are_warned_of(project, caplog):
    with caplog.at_level(logging.WARNING, logger="annif"):
        make("longtail_tree", project, cluster_k="2", c="2", zzz="1").suggest([Document(text=TEXT)])
    told = [record.getMessage() for record in caplog.records]
    assert any("cluster_k is a parameter of Omikuji and has no effect here." in line for line in told)
    assert any("zzz is no parameter of this backend and has no effect." in line for line in told)


def test_train_with_parameters(project, document_corpus):
    backend = make("longtail_tree", project)
    backend.train(document_corpus, {"ngram": "2", "beam": "7", "c": "0.5", "balanced": "yes"}, jobs=1)
    model = backend._model.model_
    assert (model.beam, model.C, model.balanced) == (7, 0.5, True)
    assert any(" " in term for term in backend._model.features_.vocabulary_)


def test_learn_new_words_and_subjects(project, document_corpus, tmp_path):
    backend = make("longtail_tree", project)
    backend.train(document_corpus)
    other = make("longtail_tree", project)  # as in another process
    assert len(other.suggest([Document(text="avaruus raketti")])[0]) == 0
    new = "http://example.org/unused/7"
    rows = [("avaruus raketti planeetta tähti", [new]), ("raketti kuu avaruus", [new])] * 5
    corpus = annif.corpus.DocumentFileTSV(str(write_corpus(tmp_path / "new.tsv", rows)), project.subjects)
    backend.learn(corpus)
    for asked in (backend, other):  # the other notices that there is another model
        found = next(iter(asked.suggest([Document(text="avaruus raketti")])[0]))
        assert project.subjects[found.subject_id].uri == new


def test_learn_without_a_model(project, empty_corpus, tmp_path):
    backend = make("longtail_tree", project)
    backend.datadir = str(tmp_path)
    with pytest.raises(NotInitializedException):
        backend.learn(empty_corpus)


def test_the_hybrid_does_not_learn():
    from annif.backend.backend import AnnifLearningBackend

    assert not issubclass(annif.backend.get_backend("longtail_hybrid"), AnnifLearningBackend)


def test_cached_documents_of_another_analyzer_are_refused(project, datadir):
    backend = make("longtail_tree", project)
    file = datadir / "longtail_tree-train.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["reader"] == "SnowballAnalyzer"
    file.write_text("\n".join([lines[0].replace("SnowballAnalyzer", "simple"), *lines[1:]]), encoding="utf-8")
    with pytest.raises(OperationFailedException, match="was made with the analyzer 'simple'"):
        backend.train("cached")
    file.write_text("\n".join([*lines[:5], '["half a li']), encoding="utf-8")
    with pytest.raises(OperationFailedException, match="is damaged"):
        backend.train("cached")
    file.write_text("\n".join(lines), encoding="utf-8")


def test_a_damaged_model_is_named(project, tmp_path):
    backend = make("longtail_tree", project)
    backend.datadir = str(tmp_path)
    (tmp_path / "longtail_tree-model").mkdir()
    (tmp_path / "longtail_tree-model" / "manifest.json").write_text("{}")
    with pytest.raises(OperationFailedException, match="longtail_tree-model"):
        backend.suggest([Document(text=TEXT)])


def test_hyperopt(name, project, tmp_path):
    file = write_corpus(tmp_path / "held.tsv", documents(30, 7))
    corpus = annif.corpus.DocumentFileTSV(str(file), project.subjects)
    best = make(name, project).get_hp_optimizer(corpus, metric="NDCG").optimize(2, 1, None)
    assert best.score > 0.8
    names = [line.split("=")[0] for line in best.lines]
    assert names == (["min_df", "ngram", "C", "overlap"] if name == "longtail_tree" else ["tail", "overlap"])


def test_config_classes_register_the_backends():
    import annif_longtail

    app = annif.create_flask_app("annif_longtail.ProductionConfig")
    assert app.config["INITIALIZE_PROJECTS"] is True
    annif_longtail.register()
    assert annif.backend.get_backend("longtail_tree").name == "longtail_tree"
