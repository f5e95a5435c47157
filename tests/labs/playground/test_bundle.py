"""The bundle runs modules in the order of their imports, each with names of its own."""

from __future__ import annotations

import pytest

from blklab.labs.playground.bundle import BundleError, bundle


def _bundle(**modules: str) -> str:
    return bundle("main", lambda name: modules[name])


def test_modules_come_after_those_that_they_import_and_once() -> None:
    script = _bundle(
        main='import { a } from "./first.js";\nimport { b } from "./second.js";\nuse(a, b);\n',
        first='import { b } from "./second.js";\nexport const a = b + 1;\n',
        second="const hidden = 1;\nexport const b = hidden;\n",
    )
    assert script.index("// second.js") < script.index("// first.js") < script.index("// main.js")
    assert script.count("// second.js") == 1
    assert "import" not in script
    assert "export" not in script
    assert script.count("const hidden") == 1


def test_each_form_of_export_is_read() -> None:
    text = "export class A {}\nexport function b() {}\nexport async function c() {}\nexport let d = 1;\n"
    script = _bundle(main='import { A, b, c, d } from "./parts.js";\n', parts=text)
    assert "return { A, b, c, d };" in script


def test_an_import_over_several_lines_is_read() -> None:
    script = _bundle(
        main='import {\n  a,\n  b,\n} from "./parts.js";\n', parts="export const a = 1, b = 2;\n"
    )
    assert "const { a, b } = module_parts;" in script


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('import all from "./parts.js";\n', "import all"),
        ("export default 3;\n", "export default"),
        ('export { a } from "./parts.js";\n', "export { a }"),
        ('import { main } from "./main.js";\n', "main -> main"),
    ],
)
def test_other_forms_and_circles_are_refused(text: str, words: str) -> None:
    with pytest.raises(BundleError, match=words):
        _bundle(main=text, parts="")
