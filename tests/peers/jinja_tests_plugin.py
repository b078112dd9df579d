"""A plugin of pytest for jinja2's tests: writes down the templates that are rendered from texts, with variables that JSON can say."""
import json
import os

import jinja2

compiled = jinja2.Environment.from_string
rendered = jinja2.Template.render


def from_string(self, source, *arguments, **named):
    template = compiled(self, source, *arguments, **named)
    if isinstance(source, str) and self.block_start_string == "{%" and self.variable_start_string == "{{" and self.comment_start_string == "{#":
        template.peers_source = source
    return template


def render(self, *arguments, **named):
    source = getattr(self, "peers_source", None)
    if source is not None:
        try:
            variables = dict(*arguments, **named)
            line = json.dumps({"template": source, "variables": variables})
            if json.loads(line)["variables"] == variables:
                with open(os.environ["PEERS_RENDERED"], "a", encoding="utf-8") as file:
                    file.write(line + "\n")
        except (TypeError, ValueError):
            pass
    return rendered(self, *arguments, **named)


jinja2.Environment.from_string = from_string
jinja2.Template.render = render
