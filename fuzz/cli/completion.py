"""Completion under bash, of words with colons too: ``--executors tf:gra``.

For readline a colon ends a word (`COMP_WORDBREAKS`): it replaces what follows the last one only.
Click's own class takes the words that readline made, and offers whole words, so that ``tf:gra``
completed nothing, or became ``tf:tf:grappler``. This one takes the line, and offers what is left.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from click.shell_completion import BashComplete, add_completion_class, split_arg_string

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response completion type value
    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1")
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=("${COMPREPLY[@]}")
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
        fi
    done
    return 0
}

%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}

%(complete_func)s_setup;
"""


@add_completion_class
class ColonBashComplete(BashComplete):
    """Completion under bash, with the line as it stands."""

    name = "bash"
    source_template = SOURCE

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.before = ""  # of the word: what readline keeps

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one to complete, and that one."""
        if "COMP_LINE" not in os.environ:  # asked by a script that click wrote, of an older release
            return super().get_completion_args()
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode()
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        begin, equals, value = incomplete.partition("=")
        word = value if equals and begin.startswith("-") else incomplete
        if ":" in os.environ.get("COMP_WORDBREAKS", ":"):
            self.before = word[: word.rfind(":") + 1]
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """One line of the answer: the kind, and what readline puts in place of its word."""
        return f"{item.type},{item.value.removeprefix(self.before)}"
