"""A plugin of pytest for llama.cpp's server tests: they start a server for each of their models at first, and some models are not here."""


def pytest_sessionstart(session):
    import utils  # of the tests
    utils.ServerPreset.load_all = staticmethod(lambda: None)
