"""What mode export writes: networks in forms that need nothing of this project, each checked in a clean process."""
