"""A shelf that holds a limited number of books."""


class Shelf:
    """Books in the order in which they were put there; the one that was read least recently leaves first."""

    def __init__(self, places):
        if places < 1:
            raise ValueError("a shelf has at least one place")
        self.places = places
        self._books = []

    def put(self, title):
        """Put a book on the shelf and return the title that had to leave for it, or None.

        A book that is there already counts as read.
        """
        if title in self._books:
            self.read(title)
            return None
        removed = None
        if len(self._books) >= self.places:
            removed = self._books.pop(0)
        self._books.append(title)
        return removed

    def read(self, title):
        """Note that a book was read. A book that is not there is a KeyError."""
        if title not in self._books:
            raise KeyError(title)
        self._books.remove(title)
        self._books.append(title)

    def titles(self):
        """The titles, least recently read first."""
        return list(self._books)
