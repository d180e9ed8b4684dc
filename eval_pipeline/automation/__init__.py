"""What starts by itself or by name: jobs and sensors. They request runs or register keys, and compute nothing."""
