// The room CofferAPI.
