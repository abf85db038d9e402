"""gradserve within an application of yours, under /grad: `uvicorn --app-dir deploy mounted:app`."""

from __future__ import annotations

from fastapi import FastAPI
from service.asgi import app as gradserve

app = FastAPI(lifespan=gradserve.lifespan)
app.mount("/grad", gradserve)


@app.get("/hello")
def hello() -> str:
    """What else the application does."""
    return "hello"
