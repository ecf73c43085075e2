import asyncio
import datetime
import gzip
import hashlib
import multiprocessing
import os
import resource
import signal
import ssl
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import certifi
import pytest
from pydantic import ValidationError

from endpoint import Reply
from pages_server import PagesServer
from pipeline.scraping import scraper as scraping
from pipeline.scraping.documents import Found
from pipeline.scraping.public_addresses import is_public
from pipeline.scraping.scraper import Scraped, ScrapeError, Scraper, Scraping

ABSTRACT = (
    "We study how bees find nectar. Forty hives were watched over two summers. Bees fly farther after rain than before."
)
PAGE = (
    f'<html><head><meta name="citation_abstract" content="{ABSTRACT}"></head><body><h1>Bees</h1></body></html>'.encode()
)
#: Of 28 kB, with a million steps of text on one page: busy for seconds in any reader.
SLOW_PDF_CONTENT = b"BT /F1 12 Tf " + b"1 1 Td (a) Tj " * 1_000_000 + b"ET"


def pdf(content: bytes) -> bytes:
    """One page with this content; without a table of its objects, which readers make up for."""
    packed = zlib.compress(content)
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(packed), packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    numbered = (b"%d 0 obj\n%b\nendobj\n" % numbered for numbered in enumerate(objects, 1))
    return b"%PDF-1.4\n" + b"".join(numbered) + b"trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n0\n%%EOF"


@pytest.fixture
def site() -> Iterator[Callable[..., PagesServer]]:
    """Start a server whose replies are told: one for all, or by path."""
    servers: list[PagesServer] = []

    def start(
        replies: Reply | dict[str, Reply] | Callable[[str], Reply], tls: ssl.SSLContext | None = None
    ) -> PagesServer:
        if isinstance(replies, dict):
            respond = replies.__getitem__
        else:
            respond = (lambda path: replies) if isinstance(replies, Reply) else replies
        servers.append(PagesServer(respond, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


async def here(host: str, port: int) -> list[str]:
    """Stands for a name server to which all names are this machine."""
    return ["127.0.0.1"]


def is_here(address: str) -> bool:
    return address == "127.0.0.1"


def scrape(url: str, is_allowed=is_here, resolver=here, **settings: float) -> Scraped:
    async def run() -> Scraped:
        async with Scraper(Scraping(**{"concurrency": 1, **settings}), "tests/1", is_allowed, resolver) as scraper:
            return await scraper.scrape(url)

    return asyncio.run(run())


def journal(server: PagesServer, path: str = "/", scheme: str = "http", host: str = "journal.example") -> str:
    return f"{scheme}://{host}:{server.port}{path}"


# What comes back


def test_a_page_is_fetched_and_read(site):
    server = site(Reply(PAGE))
    assert scrape(journal(server, "/7?a=b")) == Scraped(
        url=journal(server, "/7?a=b"),
        kind="html",
        n_bytes=len(PAGE),
        sha256=hashlib.sha256(PAGE).hexdigest(),
        found=Found(abstract=ABSTRACT),
    )
    assert [asked.path for asked in server.asked] == ["/7?a=b"]
    assert server.asked[0].headers["Host"] == f"journal.example:{server.port}"
    assert server.asked[0].headers["User-Agent"] == "tests/1"


@pytest.mark.parametrize("media_type", ["application/pdf", "application/octet-stream", "text/html; charset=utf-8", ""])
def test_a_pdf_is_told_by_its_bytes(site, media_type):
    lines = b"(Abstract) Tj 0 -1 Td (" + ABSTRACT.encode() + b") Tj 0 -1 Td (Introduction) Tj"
    server = site(Reply(pdf(b"BT /F1 1 Tf 1 9 Td " + lines + b" ET"), headers={"Content-Type": media_type}))
    scraped = scrape(journal(server))
    assert (scraped.kind, scraped.found.abstract) == ("pdf", ABSTRACT)


def test_a_page_that_stands_in_for_a_pdf_is_a_page(site):
    assert scrape(journal(site(Reply(PAGE, headers={"Content-Type": "application/pdf"})))).kind == "html"


def test_a_packed_page_is_unpacked(site):
    server = site(Reply(gzip.compress(PAGE), headers={"Content-Encoding": "gzip"}))
    assert scrape(journal(server)).sha256 == hashlib.sha256(PAGE).hexdigest()


def test_what_follows_a_packed_page_is_left(site):
    body = gzip.compress(PAGE) + b"x" * 50_000_000
    server = site(Reply(body, headers={"Content-Encoding": "gzip", "Content-Length": ""}))
    tracemalloc.start()
    assert scrape(journal(server)).n_bytes == len(PAGE)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["identity", " "])
def test_a_page_may_say_that_it_is_not_packed(site, encoding):
    assert scrape(journal(site(Reply(PAGE, headers={"Content-Encoding": encoding})))).n_bytes == len(PAGE)


def test_the_encoding_may_be_declared_by_the_header_alone(site):
    greek = "\u03bc\u03ad\u03bb\u03b9\u03c3\u03c3\u03b5\u03c2 " * 15
    body = PAGE.decode().replace(ABSTRACT, greek).encode("iso8859-7")
    server = site(Reply(body, headers={"Content-Type": "text/html; charset=ISO-8859-7"}))
    assert scrape(journal(server)).found.abstract == greek.strip()


def test_a_page_without_an_abstract_has_none(site):
    assert scrape(journal(site(Reply(b"<html><body><p>Please log in.</p></body></html>")))).found == Found()


# Where nobody is asked


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "0x7f000001", "0x7f.1", "2130706433", "127.1", "0177.0.0.1"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0", "[::]"),
    ],
)
def test_this_machine_is_not_asked_in_any_spelling(site, host):
    server = site(Reply(PAGE))

    async def run() -> None:
        async with Scraper(Scraping(), "tests/1") as scraper:
            await scraper.scrape(f"http://{host}:{server.port}/")

    with pytest.raises(ScrapeError, match=r"not public|no address|no web address"):
        asyncio.run(run())
    assert server.n_connections == 0


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["::1"], ["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], []],
)
def test_a_name_is_not_asked_unless_all_its_addresses_are_public(site, addresses):
    server = site(Reply(PAGE))

    async def resolver(host: str, port: int) -> list[str]:
        return addresses

    with pytest.raises(ScrapeError, match=r"not public|no address"):
        scrape(journal(server), is_public, resolver)
    assert server.n_connections == 0


@pytest.mark.parametrize(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://journal.example/7.pdf",
            "data:text/html,<p>Bees</p>",
            "gopher://journal.example/",
        ),
        *("", "10.1234/bees.7", "//journal.example/7", "http:///7", "http://", "https:journal.example", "http://[::1/"),
        *("http://user:word@journal.example/", "http://user@journal.example/", "http://journal.example\\@127.0.0.1/"),
        *("http://journal.example:25/", "https://journal.example:22/", "http://journal.example:0/"),
        *("http://journal.example:99999/", "http://journal.example/\x00", "javascript:alert(1)"),
    ],
)
def test_what_is_no_open_web_address_is_not_even_resolved(url):
    async def resolver(host: str, port: int) -> list[str]:
        raise AssertionError("was resolved")

    with pytest.raises(ScrapeError, match=r"web address|user name|port"):
        scrape(url, resolver=resolver)


@pytest.mark.parametrize(
    "host", ["xn--a", "xn--", ".", "..", "a..b", "-", "x" * 64, "%00", "%31%32%37.0.0.1", "[fe80::1%25lo]", "[v1.x]"]
)
def test_no_host_is_too_odd_to_be_refused(host):
    async def run() -> None:
        async with Scraper(Scraping(), "tests/1") as scraper:
            await scraper.scrape(f"https://{host}/")

    with pytest.raises(ScrapeError):
        asyncio.run(run())


@pytest.mark.parametrize("error", [OSError("no such name"), UnicodeError("label too long")])
def test_a_name_that_nobody_knows_has_no_address(error):
    async def resolver(host: str, port: int) -> list[str]:
        raise error

    with pytest.raises(ScrapeError, match=r"journal\.example has no address"):
        scrape("http://journal.example/", resolver=resolver)


# Redirects


def redirect(location: str, status: int = 302, **headers: str) -> Reply:
    return Reply(status=status, headers={"Location": location, **headers})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(site, status):
    server = site({})
    there = redirect(f"//other.example:{server.port}/c", status)
    server.respond = {"/a/1": redirect("../b", status), "/b": there, "/c": Reply(PAGE)}.__getitem__
    assert scrape(journal(server, "/a/1")).url == f"http://other.example:{server.port}/c"
    assert [asked.headers["Host"].split(":")[0] for asked in server.asked] == [
        *("journal.example", "journal.example", "other.example")
    ]


def test_five_redirects_are_followed_and_no_more(site):
    server = site(lambda path: redirect(f"/{int(path[1:]) + 1}") if path != "/9" else Reply(PAGE))
    assert scrape(journal(server, "/4")).url.endswith("/9")
    with pytest.raises(ScrapeError, match="more than 5 times"):
        scrape(journal(server, "/3"))


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.1:{port}/", "http://localhost:{port}/", "//127.1:{port}/", "http://2130706433:{port}/"),
        *("http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://10.0.0.1/"),
        *("file:///etc/passwd", "ftp://journal.example/", "data:text/html,x", "http://user:word@journal.example/"),
        *("http://journal.example:25/", "http://[::1", "http://"),
    ],
)
def test_a_redirect_is_checked_like_the_first_address(site, location):
    inside = site(Reply(PAGE))
    server = site(redirect(location.format(port=inside.port)))
    answers: list[str] = []

    def first_alone(address: str) -> bool:
        """Takes this machine for a public one where it is asked the first time."""
        answers.append(address)
        return len(answers) == 1 or is_public(address)

    async def resolver(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "journal.example" else await scraping.resolve(host, port)

    with pytest.raises(ScrapeError, match=r"not public|web address|user name|port"):
        scrape(journal(server), first_alone, resolver)
    assert len(server.asked) == 1
    assert inside.n_connections == 0


def test_a_name_is_resolved_once_a_hop_so_that_a_second_answer_leads_nowhere(site):
    server = site({"/": Reply(PAGE), "/again": redirect("/")})
    answers = {"journal.example": iter([["127.0.0.1"], ["10.0.0.1"]])}

    async def resolver(host: str, port: int) -> list[str]:
        return next(answers[host])

    assert scrape(journal(server), resolver=resolver).n_bytes == len(PAGE)
    assert next(answers["journal.example"]) == ["10.0.0.1"]  # was not asked for

    answers["journal.example"] = iter([["127.0.0.1"], ["10.0.0.1"]])
    with pytest.raises(ScrapeError, match=r"leads to 10\.0\.0\.1"):
        scrape(journal(server, "/again"), resolver=resolver)


def test_hosts_at_one_address_share_no_cookie_and_no_connection(site):
    server = site(Reply(PAGE, headers={"Set-Cookie": "who=me; Path=/"}))

    async def run() -> None:
        async with Scraper(Scraping(concurrency=1), "tests/1", is_here, here) as scraper:
            await scraper.scrape(f"http://journal.example:{server.port}/")
            await scraper.scrape(f"http://other.example:{server.port}/")

    asyncio.run(run())
    assert [asked.headers.get("Cookie") for asked in server.asked] == [None, None]
    assert server.n_connections == 2


def test_proxies_of_the_environment_are_left_aside(site, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
    assert scrape(journal(site(Reply(PAGE)))).kind == "html"


def test_the_next_address_is_tried_where_nobody_answers(site):
    async def resolver(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]  # the server is at the second alone

    assert scrape(journal(site(Reply(PAGE))), lambda address: True, resolver).kind == "html"


# Certificates


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's certificate for journal.example that the client trusts."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test")]),
    )
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("journal.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    (tmp_path / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setattr(certifi, "where", lambda: str(tmp_path / "certificate.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    return context


@pytest.mark.parametrize("host", ["journal.example", "journal.example."])
def test_a_certificate_is_held_against_the_name_though_the_address_is_asked(site, tls, host):
    server, names = site(Reply(PAGE), tls), []
    tls.sni_callback = lambda connection, name, context: names.append(name)
    assert scrape(f"https://{host}:{server.port}/").kind == "html"
    assert names == ["journal.example"]


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1"])
def test_a_certificate_of_another_name_is_refused_before_anything_is_asked(site, tls, host):
    server = site(Reply(PAGE), tls)
    with pytest.raises(ScrapeError, match="connection failed"):
        scrape(f"https://{host}:{server.port}/")
    assert server.asked == []


# Too much, too slow, or nothing of use


@pytest.mark.parametrize(
    "headers",
    [
        {},  # tells its length
        {"Content-Length": ""},  # tells none
    ],
)
def test_a_body_is_refused_once_it_is_too_big(site, headers):
    server = site(Reply(b"<" * 50_000_000, headers=headers))
    tracemalloc.start()
    with pytest.raises(ScrapeError, match="more than 1 MB"):
        scrape(journal(server), max_mb=1)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_bomb_is_not_unpacked_beyond_the_limit(site):
    packed = gzip.compress(bytes(100_000_000))
    server = site(Reply(packed, headers={"Content-Encoding": "gzip"}))
    tracemalloc.start()
    with pytest.raises(ScrapeError, match="more than 1 MB"):
        scrape(journal(server), max_mb=1)
    assert len(packed) < 1_000_000
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_body_of_just_the_limit_is_read(site):
    body = PAGE + b" " * (1_000_000 - len(PAGE))
    assert scrape(journal(site(Reply(body))), max_mb=1).n_bytes == 1_000_000


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "deflate", "compress"])
def test_other_packings_are_refused(site, encoding):
    with pytest.raises(ScrapeError, match="packed as"):
        scrape(journal(site(Reply(PAGE, headers={"Content-Encoding": encoding}))))


@pytest.mark.parametrize(
    "media_type", ["image/png", "application/zip", "video/mp4", "application/json", "audio/x; a=b"]
)
def test_other_media_are_refused_before_they_are_read(site, media_type):
    server = site(Reply(b"x" * 1000, headers={"Content-Type": media_type}, drip=1.0))
    started = time.monotonic()
    with pytest.raises(ScrapeError, match=rf"is {media_type.split(';')[0]}, not HTML or PDF"):
        scrape(journal(server))
    assert time.monotonic() - started < 10


def test_what_only_says_that_it_is_a_document_is_refused(site):
    server = site(Reply(b"PK\x03\x04", headers={"Content-Type": "application/octet-stream"}))
    with pytest.raises(ScrapeError, match="neither HTML nor PDF"):
        scrape(journal(server))


@pytest.mark.parametrize("status", [204, 206, 304, 403, 404, 429, 500])
def test_other_answers_are_refused(site, status):
    with pytest.raises(ScrapeError, match=f"status {status}"):
        scrape(journal(site(Reply(PAGE, status=status))))


@pytest.mark.parametrize("reply", [Reply(PAGE, drip=0.3), Reply(PAGE, delay=60)])
def test_a_slow_host_is_left(site, reply):
    started = time.monotonic()
    with pytest.raises(ScrapeError, match=r"took longer than 0\.8 s"):
        scrape(journal(site(reply)), timeout_s=0.8)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("reply", [Reply(PAGE, cut_after=50), Reply(reset=True)])
def test_a_connection_that_breaks_off_gives_nothing(site, reply):
    with pytest.raises(ScrapeError, match="connection failed"):
        scrape(journal(site(reply)))


@pytest.mark.parametrize(("body", "told"), [(gzip.compress(PAGE)[:60], "gzip that ends too early"), (b"", "no HTML")])
def test_a_packed_body_that_ends_too_early_gives_nothing(site, body, told):
    with pytest.raises(ScrapeError, match=told):
        scrape(journal(site(Reply(body, headers={"Content-Encoding": "gzip"}))))


def test_a_body_that_is_not_packed_as_it_says_gives_nothing(site):
    with pytest.raises(ScrapeError, match="gzip that cannot be unpacked"):
        scrape(journal(site(Reply(PAGE, headers={"Content-Encoding": "gzip"}))))


def test_a_host_that_nobody_answers_at_gives_nothing(site):
    server = site(Reply(PAGE))
    server.stop()
    with pytest.raises(ScrapeError, match="connection failed"):
        scrape(journal(server))


# Hostile documents


def scrape_all(server: PagesServer, *paths: str, **settings: float) -> list[str | None]:
    """Scrape these one after the other in one context: the abstract of each, or why there is none."""

    async def one(scraper: Scraper, path: str) -> str | None:
        try:
            return (await scraper.scrape(journal(server, path))).found.abstract
        except ScrapeError as error:
            return str(error)

    async def run() -> list[str | None]:
        async with Scraper(Scraping(**{"concurrency": 1, **settings}), "tests/1", is_here, here) as scraper:
            return [await one(scraper, path) for path in paths]

    return asyncio.run(run())


def test_a_broken_pdf_gives_a_reason(site):
    with pytest.raises(ScrapeError, match=r"cannot be read as PDF \(\w+\)"):
        scrape(journal(site(Reply(b"%PDF-1.7\nnothing of the kind"))))


def test_a_pdf_that_keeps_its_reader_busy_is_given_up_and_the_next_is_read(site):
    server = site({"/slow": Reply(pdf(SLOW_PDF_CONTENT)), "/": Reply(PAGE)})
    assert scrape_all(server, "/slow", "/", timeout_s=5) == ["took longer than 5 s", ABSTRACT]


def test_a_pdf_that_unpacks_without_end_is_given_up(site):
    server = site(Reply(pdf(bytes(100_000_000))))
    with pytest.raises(ScrapeError, match="cannot be read as PDF"):
        scrape(journal(server))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_page_of_millions_of_paragraphs_takes_no_more_memory_than_it_may(site):
    server = site({"/long": Reply(b"<html><body>" + b"<p>x" * 4_000_000), "/": Reply(PAGE)})
    reason, abstract = scrape_all(server, "/long", "/")
    assert reason.startswith(("took longer", "holds no HTML", "cannot be read", "ended the process"))
    assert abstract == ABSTRACT
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1_500_000  # kB; without a limit 7 million


def loop(kind: str, body: bytes, url: str, charset: str | None) -> Found:
    """A parser that neither ends nor lets itself be asked to end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
    while True:
        pass


@pytest.mark.parametrize(
    ("timeout_s", "parsing_s", "reason"), [(60, 2, "took longer than 2 s to read"), (10, 60, "took longer than 10 s")]
)
def test_a_parser_that_never_ends_is_killed(site, monkeypatch, tmp_path, timeout_s, parsing_s, reason):
    monkeypatch.setenv("PID_FILE", str(tmp_path / "pid"))
    monkeypatch.setattr(scraping, "read_document", loop)
    monkeypatch.setattr(scraping, "_PARSING_S", parsing_s)
    with pytest.raises(ScrapeError, match=f"^{reason}$"):
        scrape(journal(site(Reply(PAGE))), timeout_s=timeout_s)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def crash(kind: str, body: bytes, url: str, charset: str | None) -> Found:
    os.abort()


def test_a_parser_that_crashes_takes_its_document_alone_with_it(site, monkeypatch):
    server = site(Reply(PAGE))
    reader = scraping.read_document
    server.respond = lambda path: (
        monkeypatch.setattr(scraping, "read_document", crash if path == "/bad" else reader) or Reply(PAGE)
    )
    assert scrape_all(server, "/", "/bad", "/") == [ABSTRACT, "ended the process that read it", ABSTRACT]


def test_documents_are_read_on_after_an_idle_process_was_killed(site):
    server = site(Reply(PAGE))

    def kill_idle(path: str) -> Reply:
        if path == "/kill":
            for process in multiprocessing.active_children():
                os.kill(process.pid, signal.SIGKILL)
        return Reply(PAGE)

    server.respond = kill_idle
    first, _, third = scrape_all(server, "/", "/kill", "/")  # the second may come before the death is known
    assert (first, third) == (ABSTRACT, ABSTRACT)


def fail_to_import(kind: str, body: bytes, url: str, charset: str | None) -> Found:
    raise ImportError("no parser is installed")


def test_a_missing_parser_is_not_the_fault_of_a_document(site, monkeypatch):
    monkeypatch.setattr(scraping, "read_document", fail_to_import)
    with pytest.raises(ImportError, match="no parser"):
        scrape(journal(site(Reply(PAGE))))


def tell_limits(kind: str, body: bytes, url: str, charset: str | None) -> Found:
    names = ("RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_AS")
    return Found(keywords=tuple(str(resource.getrlimit(getattr(resource, name))[0]) for name in names))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_documents_are_read_within_limits(site, monkeypatch):
    monkeypatch.setattr(scraping, "read_document", tell_limits)
    core, cpu, memory = map(int, scrape(journal(site(Reply(PAGE)))).found.keywords)
    assert (core, cpu) == (0, 500)  # 50 documents of 10 s
    assert 1_073_741_824 <= memory < 3_000_000_000


# Many at a time


@pytest.mark.parametrize(
    ("hosts", "most"),
    [
        ([f"{n}.example" for n in range(8)], 2),  # as many as are allowed
        (["journal.example", "Journal.Example"] * 4, 1),  # one of a host
        (["journal.example"] * 4 + ["other.example"] * 4, 2),
    ],
)
def test_no_more_documents_are_under_way_than_allowed_and_one_of_a_host(site, hosts, most):
    under_way: list[str] = []
    counts: list[int] = []

    def respond(path: str) -> Reply:
        under_way.append(path)
        counts.append(len(under_way))
        server.stopped.wait(0.1)
        under_way.remove(path)
        return Reply(PAGE, status=404)

    server = site(respond)

    async def run() -> list[BaseException]:
        async with Scraper(Scraping(concurrency=2), "tests/1", is_here, here) as scraper:
            urls = [journal(server, f"/{n}", host=host) for n, host in enumerate(hosts)]
            return await asyncio.gather(*map(scraper.scrape, urls), return_exceptions=True)

    assert [str(error) for error in asyncio.run(run())] == ["was answered with status 404"] * 8
    assert max(counts) == most


def test_one_document_of_the_host_that_redirects_lead_to_is_under_way(site):
    under_way: list[str] = []
    counts: list[int] = []
    server = site(Reply(PAGE))

    def respond(path: str) -> Reply:
        if not path.startswith("/article"):
            return Reply(
                b"", status=302, headers={"Location": journal(server, f"/article{path}", host="publisher.example")}
            )
        under_way.append(path)
        counts.append(len(under_way))
        server.stopped.wait(0.1)
        under_way.remove(path)
        return Reply(PAGE, status=404)

    server.respond = respond

    async def run() -> list[BaseException]:
        async with Scraper(Scraping(concurrency=4), "tests/1", is_here, here) as scraper:
            urls = [journal(server, f"/{n}", host=f"{n}.example") for n in range(4)]
            return await asyncio.gather(*map(scraper.scrape, urls), return_exceptions=True)

    assert [str(error) for error in asyncio.run(run())] == ["was answered with status 404"] * 4
    assert counts == [1] * 4


def test_waiting_for_another_document_of_a_host_takes_none_of_the_time_of_a_document(site):
    server = site(Reply(PAGE, status=404, delay=0.8))

    async def run() -> list[BaseException]:
        async with Scraper(Scraping(concurrency=4, timeout_s=2.5), "tests/1", is_here, here) as scraper:
            urls = [journal(server, f"/{n}") for n in range(4)]  # 3.2 s one after the other
            return await asyncio.gather(*map(scraper.scrape, urls), return_exceptions=True)

    assert [str(error) for error in asyncio.run(run())] == ["was answered with status 404"] * 4


@pytest.mark.parametrize(
    "settings", [{"timeout_s": 0}, {"timeout_s": float("inf")}, {"max_mb": 0}, {"concurrency": 0}, {"attempts": 3}]
)
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(ValidationError):
        Scraping(**settings)
