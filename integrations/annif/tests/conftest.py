"""A small Finnish corpus of our own, and a project as Annif's own backend tests have it."""

import random
import unittest.mock
from pathlib import Path

import annif.analyzer
import annif.corpus
import annif.vocab
import pytest

import annif_longtail  # noqa: F401  (registers the backends)

ARCHAEOLOGY = "http://www.yso.fi/onto/yso/p1265"
WORDS = {
    ARCHAEOLOGY: "arkeologia arkeologinen muinaistutkimus kaivaus muinaisjäännös esihistoria hautalöytö menneisyys",
    "http://example.org/ships": "laiva hylky purjehdus merenkulku satama laituri vene ankkuri",
    "http://example.org/castles": "linna linnoitus muuri torni kuningas piiritys vallihauta portti",
    "http://example.org/churches": "kirkko alttari pappi seurakunta luostari risti kynttilä kappeli",
    "http://example.org/coins": "raha kolikko hopea kulta aarre leima rahapaja arvo",
    "http://example.org/forests": "metsä puu mänty kuusi koivu hakkuu sieni marja",
}


def pytest_configure(config):
    """Let no test reach for the net: Annif's analyzers need the data of NLTK."""
    import nltk

    try:
        nltk.data.find("tokenizers/punkt_tab")
    except LookupError:
        pytest.exit("the tests need the package punkt_tab of NLTK; set NLTK_DATA to where it is.", 2)


def concepts() -> list[tuple[str, str]]:
    """Return 130 subjects with their names, the first of them used by documents."""
    used = [(uri, words.split()[0]) for uri, words in WORDS.items()]
    return used + [(f"http://example.org/unused/{n}", f"aihe{n}") for n in range(130 - len(used))]


@pytest.fixture(scope="module")
def datadir(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def vocabulary(datadir):
    file = datadir / "subjects.tsv"
    file.write_text("".join(f"<{uri}>\t{name}\n" for uri, name in concepts()), encoding="utf-8")
    vocab = annif.vocab.AnnifVocabulary("my-vocab", str(datadir))
    vocab.load_vocabulary(annif.vocab.VocabFileTSV(str(file), "fi"))
    return vocab


@pytest.fixture(scope="module")
def project(vocabulary, datadir):
    made = unittest.mock.Mock()
    made.analyzer = annif.analyzer.get_analyzer("snowball(finnish)")
    made.vocab, made.subjects, made.vocab_lang = vocabulary, vocabulary.subjects, "fi"
    made.datadir, made.project_id = str(datadir), "my-project"
    return made


def documents(n: int, seed: int) -> list[tuple[str, list[str]]]:
    """Return texts of one or two subjects."""
    draw = random.Random(seed)
    out = []
    for _ in range(n):
        uris = draw.sample(sorted(WORDS), draw.choice([1, 1, 2]))
        words = [word for uri in uris for word in draw.choices(WORDS[uri].split(), k=6)]
        draw.shuffle(words)
        out.append((" ".join(words), uris))
    return out


def write_corpus(file: Path, rows: list[tuple[str, list[str]]]) -> Path:
    """Write documents as Annif's tab separated file."""
    file.write_text("".join(f"{text}\t{' '.join(f'<{u}>' for u in uris)}\n" for text, uris in rows), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def document_corpus(datadir, project):
    file = write_corpus(datadir / "documents.tsv", documents(160, 0))
    return annif.corpus.DocumentFileTSV(str(file), project.subjects)


@pytest.fixture
def empty_corpus(tmp_path, project):
    return annif.corpus.DocumentFileTSV(str(write_corpus(tmp_path / "empty.tsv", [])), project.subjects)
