// The room CofferPolicy.
