"""The gallery: pictures of schedulers at work, drawn from simulated runs of one scene."""
