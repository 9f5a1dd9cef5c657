"""What a page is made of, whatever it says."""

from html.parser import HTMLParser


class Skeleton(HTMLParser):
    """Tags and names of attributes, in order, and every link."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.parts, self.links, self.ids, self.text = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.parts.append((tag, *sorted(name for name, _ in attrs)))
        for name, value in attrs:
            if name in ("href", "src", "srcset", "action", "xlink:href", "poster"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_data(self, data):
        self.text.append(data)
