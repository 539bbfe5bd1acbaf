"""What a lesson shows: data() is a pure function, show() a thin view on it."""
