"""Links from a page to what lies in the run folder."""

from urllib.parse import unquote

import pytest
from report_pages import Reader, page_of, shown
from run_folders import make

from pipeline import report
from pipeline.reporting import comparison_page, facts, run_page
from pipeline.reporting.links import Links
from pipeline.reporting.markup import Html


def ways(page: str) -> list[str]:
    """Return where the links of a page lead, those to its own sections left out."""
    found = [attributes.get("href") or "" for tag, attributes in Reader(page).elements if tag == "a"]
    return [way for way in found if not way.startswith("#")]


def test_page_links_every_file_and_folder_that_it_names(tmp_path) -> None:
    folder = make(tmp_path / "run")
    (folder / "events").mkdir()
    page = page_of(folder)
    expected = {"./", "config.gin", "manifest.json", "metrics.jsonl", "checkpoints/", "events/", "samples/"}
    assert set(ways(page)) == expected
    assert 'All pictures in <a href="samples/">samples/</a>.' in page
    assert "Files config.gin, manifest.json, metrics.jsonl, checkpoints/, events/, samples/" in shown(page)


def test_page_links_nothing_that_is_not_there(tmp_path) -> None:
    (tmp_path / "config.gin").write_text("this is = = no gin")
    page = page_of(tmp_path)
    assert set(ways(page)) == {"./", "config.gin"} and "No evaluation.json yet." in shown(page)


@pytest.mark.parametrize("place", ["run/report.html", "page.html", "else/where/page.html"])
def test_links_are_relative_and_lead_to_the_run_from_where_the_page_lies(place, tmp_path, capsys) -> None:
    folder, target = make(tmp_path / "run"), tmp_path / place
    target.parent.mkdir(parents=True, exist_ok=True)
    report.report([str(folder)], output=str(target))
    found = ways(target.read_text())
    assert len(found) > 4
    for way in found:
        assert ":" not in way and not way.startswith("/")
        assert (target.parent / way).resolve().is_relative_to(folder) and (target.parent / way).exists()


def test_comparison_links_each_run_and_its_report(tmp_path) -> None:
    folders = [make(tmp_path / name) for name in ("a run", "other")]
    (folders[0] / "report.html").write_text("")
    found = ways(comparison_page.write([facts.read(folder) for folder in folders], place=tmp_path))
    assert found == ["a%20run/report.html", "a%20run/", "other/"]
    assert all((tmp_path / unquote(way)).exists() for way in found)


def test_preview_with_a_name_like_markup_stays_a_text_and_a_way(tmp_path) -> None:
    folder = make(tmp_path / "run")
    evil = "a:<b>&"
    (folder / "samples").rename(folder / evil)
    page = run_page.write(facts.read(folder))
    assert "<b>" not in page[page.index("<main") : page.index("</main>")]
    assert "a%3A%3Cb%3E%26/" in ways(page)


@pytest.mark.parametrize(
    "text", ["my-config.gin", "x/config.gin", "config.gins", "<pre>config.gin</pre>", "<h1>config.gin</h1>"]
)
def test_only_a_whole_name_outside_of_commands_and_titles_becomes_a_link(text, tmp_path) -> None:
    links = Links(folder=make(tmp_path / "run"), page=tmp_path / "run")
    assert links.within(Html(text), []) == text
