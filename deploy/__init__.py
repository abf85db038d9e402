"""What the container images are made with, and what checks them."""
