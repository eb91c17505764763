"""Words that a page explains, each where it first stands."""

import json
import re

import pytest
from report_pages import page_of
from run_folders import CONFIG, make

from pipeline.reporting import comparison_page, facts, glossary
from pipeline.reporting.markup import Html

WORDS = re.compile(r'<abbr title="([^"]+)">([^<]+)</abbr>')
SCORES = {"evaluations": [{"step": 40, "metrics": {"recall": {"value": 0.5, "spread": 0.1, "real_against_real": 0.9}}}]}


def jargon(folder):
    """Make a run whose page is full of it."""
    config = CONFIG + "generator/interfaces.Player.ema_decay = 0.99\nclassifier.from_logits = True\n"
    config += "experiment.Experiment.watch = @quality_watch.QualityWatch\n"
    made = make(folder, config=config)
    (made / "evaluation.json").write_text(json.dumps(SCORES))
    return made


def test_page_explains_its_jargon_once(tmp_path) -> None:
    page = page_of(jargon(tmp_path / "run"))
    found = WORDS.findall(page)
    words = [word for _, word in found]
    for word in ("ema_decay", "from_logits", "Experiment.watch", "collapse", "Fingerprint", "certificate", "recall"):
        assert words.count(word) == 1, word
    assert len({meaning for meaning, _ in found}) == len(found)
    assert all(len(meaning.split()) <= 20 for meaning, _ in found)


def test_word_is_explained_where_it_first_stands_and_in_the_list_below(tmp_path) -> None:
    body = page_of(jargon(tmp_path / "run"))
    body = body[body.index("<body>") : body.index("<script")]
    assert body.index("collapse</abbr>") < body.index("QualityWatch")
    main, _, footer = body.partition("<footer>")
    for meaning, word in WORDS.findall(main):
        assert f"<dt>{word}</dt><dd>{meaning}</dd>" in footer
        text = re.sub(r"(?s)<(a|button|caption|h1|legend|output|summary|nav)\b.*?</\1>", "", main)
        assert f">{word}</abbr>" in text[: re.search(rf"(?<![\w\"-]){re.escape(word)}(?=<)", text).end() + 7]


def test_comparison_explains_its_jargon(tmp_path) -> None:
    runs = [facts.read(jargon(tmp_path / name)) for name in ("one", "other")]
    words = [word for _, word in WORDS.findall(comparison_page.write(runs))]
    assert {"spread", "real against real", "recall"} <= set(words) and len(words) == len(set(words))


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<p>loss, loss</p><p>loss</p>", ["loss"]),
        ("<h1>loss</h1><nav><a>loss</a></nav>", []),  # a run's name and a link stay what they are
        ("<b>generator/loss</b> <b>loss_scale</b> <b>near-loss</b>", ["generator", "loss"]),
        ("<td>precision</td><b>Experiment.precision = 1</b>", ["precision"]),
        ("<span>experiment.Experiment.precision</span>", []),  # not the score of that name
        ("<p>collapse watch and collapse</p>", ["collapse watch", "collapse"]),
        ('<img alt="loss">', []),
    ],
)
def test_only_whole_words_in_running_text_are_explained(markup, words) -> None:
    changed, found = glossary.explained(Html(markup))
    assert [word for word, _ in found] == words
    assert re.sub("</?abbr[^>]*>", "", changed) == markup
