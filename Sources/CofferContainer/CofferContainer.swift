// The room CofferContainer.
