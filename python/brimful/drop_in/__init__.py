"""What makes `brimful.DataLoader` take the place of `torch.utils.data.DataLoader`."""
