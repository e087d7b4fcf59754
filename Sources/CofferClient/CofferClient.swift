// The room CofferClient.
